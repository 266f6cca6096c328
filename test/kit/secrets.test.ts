import { expect, test } from "vitest";
import { maskSecrets } from "../../src/kit/secrets.js";

const LONG = "0123456789abcdefghijklmnopqrstuvwxyz";

test("a secret is masked in whatever form it comes back, and nothing else is", () => {
  const secret = `p&ss "w/rd`;
  const forms = [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    "p&amp;ss &quot;w/rd",
    "p&#38;ss &#34;w/rd",
    Buffer.from(secret).toString("base64url"),
  ];
  for (const form of forms)
    expect(maskSecrets(`before ${form} after`, [secret]), form).toBe("before *** after");
  expect(maskSecrets("before and after", [secret])).toBe("before and after");
});

test("a part of a long secret is masked, wherever it was cut", () => {
  expect(maskSecrets(`x ${LONG.slice(0, 16)}`, [LONG])).toBe("x ***");
  expect(maskSecrets(`${LONG.slice(5, 30)}…`, [LONG])).toBe("***…");
  expect(maskSecrets(LONG + LONG, [LONG])).toBe("******");
  expect(maskSecrets(LONG.slice(0, 15), [LONG])).toBe(LONG.slice(0, 15));
});

test("short ones are left alone, except in a header that is quoted", () => {
  expect(maskSecrets("token of the leader", ["the", "leader"])).toBe("token of the leader");
  const quoted = `{"authorization":"Bearer abc","x":1} Authorization: Basic eA== (authorization=abc)`;
  expect(maskSecrets(quoted, [])).toBe(`{"authorization":"***","x":1} Authorization: *** (authorization=***`);
});

test("one secret within another, half a surrogate pair, and nothing at all", () => {
  expect(maskSecrets(`a ${LONG} b`, [LONG.slice(4, 20), LONG])).toBe("a *** b");
  expect(maskSecrets("x", ["\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800"])).toBe("x");
  expect(maskSecrets("", [LONG])).toBe("");
});
