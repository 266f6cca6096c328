/** Draws docs/growth.svg from artifacts/growth.json, which `BENCH_PART=growth make bench ARGS=etcd` writes. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Growth } from "../bench/etcd/growth.js";

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const SIZE = { width: 250, height: 190, left: 52, right: 14, top: 40, bottom: 36 };
const TEXT = 'font-family="sans-serif" font-size="11" fill="#555"';

interface Series {
  readonly title: string;
  readonly across: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

/** Both axes count in powers of ten: a straight line with the slope of the dashed one is linear growth. */
function panel({ title, across, points }: Series, left: number, top: number): string {
  const span = (values: readonly number[]): [number, number] => {
    const positive = values.filter((value) => value > 0).map(Math.log10);
    const [low, high] = [Math.floor(Math.min(...positive)), Math.ceil(Math.max(...positive))];
    return [low, Math.max(high, low + 1)];
  };
  const [x0, x1] = span(points.map(({ x }) => x));
  const [y0, y1] = span(points.map(({ y }) => y));
  const right = left + SIZE.width - SIZE.right;
  const bottom = top + SIZE.height - SIZE.bottom;
  const place = (x: number, y: number): [number, number] => [
    left + SIZE.left + ((Math.log10(x) - x0) / (x1 - x0)) * (right - left - SIZE.left),
    bottom - ((Math.log10(Math.max(y, 10 ** y0)) - y0) / (y1 - y0)) * (bottom - top - SIZE.top),
  ];
  const pairs = points.map(({ x, y }) =>
    place(x, y)
      .map((value) => value.toFixed(1))
      .join(","),
  );
  const ticks = (from: number, to: number): number[] =>
    Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
  const first = points[0]!;
  const last = points.at(-1)!;
  const steepest = Math.min(10 ** y1, Math.max(first.y, 10 ** y0) * (last.x / first.x));
  const [lx0, ly0] = place(first.x, first.y);
  const [lx1, ly1] = place((first.x * steepest) / Math.max(first.y, 10 ** y0), steepest);
  return [
    `<text x="${left + SIZE.left}" y="${top + 18}" ${TEXT} font-weight="bold">${title}</text>`,
    ...ticks(y0, y1).map((y) => {
      const [, py] = place(10 ** x0, y);
      const line = `<line x1="${left + SIZE.left}" y1="${py}" x2="${right}" y2="${py}" stroke="#ddd"/>`;
      return `${line}<text x="${left + SIZE.left - 6}" y="${py + 4}" text-anchor="end" ${TEXT}>${y.toLocaleString("en")}</text>`;
    }),
    ...points.map(({ x }) => {
      const [px] = place(x, 10 ** y0);
      return `<text x="${px}" y="${bottom + 14}" text-anchor="middle" ${TEXT}>${x.toLocaleString("en")}</text>`;
    }),
    `<text x="${(left + SIZE.left + right) / 2}" y="${bottom + 28}" text-anchor="middle" ${TEXT}>${across}</text>`,
    `<line x1="${lx0}" y1="${ly0}" x2="${lx1}" y2="${ly1}" stroke="#999" stroke-dasharray="4 4"/>`,
    `<polyline points="${pairs.join(" ")}" fill="none" stroke="#0a6" stroke-width="2"/>`,
    ...pairs.map(
      (pair) => `<circle cx="${pair.split(",")[0]}" cy="${pair.split(",")[1]}" r="3" fill="#0a6"/>`,
    ),
  ].join("\n");
}

const { elections, candidates } = JSON.parse(readFileSync(at("artifacts/growth.json"), "utf8")) as Growth;
const ofElections = (title: string, pick: (one: Growth["elections"][number]) => number): Series => ({
  ...{ title, across: "elections in one process" },
  points: elections.map((one) => ({ x: one.count, y: pick(one) })),
});
const ofCandidates = (title: string, pick: (one: Growth["candidates"][number]) => number): Series => ({
  ...{ title, across: "candidates for one election" },
  points: candidates.map((one) => ({ x: one.count, y: pick(one) })),
});
const series = [
  ofElections("handover, ms", ({ handoverMs }) => handoverMs),
  ofElections("CPU of a renewal, ms", ({ renewalCpuMs }) => renewalCpuMs),
  ofElections("resident memory, MB", ({ residentMB }) => residentMB),
  ofCandidates("handover, ms", ({ handoverMs }) => handoverMs),
  ofCandidates("messages to etcd a handover", ({ requestsEach }) => requestsEach),
];
const columns = 3;
const [width, height] = [columns * SIZE.width, Math.ceil(series.length / columns) * SIZE.height];
const panels = series.map((one, i) =>
  panel(one, (i % columns) * SIZE.width, Math.floor(i / columns) * SIZE.height),
);
const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
<rect width="${width}" height="${height}" fill="#fff"/>
${panels.join("\n")}
</svg>
`;
writeFileSync(at("docs/growth.svg"), svg);
