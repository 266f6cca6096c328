/**
 * A plugin of StrykerJS: text that is written for people is not mutated. Tests
 * compare the codes of errors and what an error or a log line names, not its
 * sentences. A text counts as a sentence if it has a space in it and is an
 * argument of an error, of a refusal (`invalid`) or of a log call.
 */
const TELLS = /(?:^|\.)(?:log|invalid|\w*Error)$/;

/** The name of what is called: `invalid`, `events.log`, `ConclaveError`. */
function calleeOf(node) {
  const { callee } = node;
  if (callee.type === "Identifier") return callee.name;
  return callee.type === "MemberExpression" && callee.property.type === "Identifier"
    ? `.${callee.property.name}`
    : "";
}

function isText(node) {
  if (node.type === "StringLiteral") return node.value.includes(" ");
  return node.type === "TemplateLiteral" && node.quasis.some(({ value }) => value.raw.includes(" "));
}

/** A text, or texts put together by `+`, as an argument. */
function isMessage(path) {
  const { node, parentPath } = path;
  if (parentPath === null || !(isText(node) || (node.type === "BinaryExpression" && node.operator === "+")))
    return false;
  const parent = parentPath.node;
  if (parent.type !== "CallExpression" && parent.type !== "NewExpression") return false;
  return parent.arguments.includes(node) && TELLS.test(calleeOf(parent));
}

export const strykerPlugins = [
  {
    kind: "Ignore",
    name: "messages",
    value: { shouldIgnore: (path) => (isMessage(path) ? "text for people" : undefined) },
  },
];
