// Figures as Markdown: tables for docs/inside/figures.md.
import { execFileSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { range } from './load.mjs';
import { postgresTitle } from './stock.mjs';

/** What the figures depend on, in one line. */
export function circumstances(what) {
  const [{ model }] = cpus();
  const load = loadavg()[0].toFixed(1);
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  return `${cpus().length} cores of ${model.trim()} (load ${load}), Node ${process.version}, ${postgresTitle()}, commit ${commit}. ${what}`;
}

/** A table with a title above it. The first column is text, the others are figures. */
export function printTable(title, headers, rows) {
  const lines = [headers, headers.map((_, i) => (i === 0 ? '---' : '--:')), ...rows];
  console.log(`\n### ${title}\n`);
  for (const cells of lines) console.log(`| ${cells.join(' | ')} |`);
}

/** Median of some rounds, and their range. */
export function median(values, digits = digitsOf(range(values).median)) {
  const { min, median: middle, max } = range(values);
  const show = (value) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return values.length === 1 ? show(middle) : `${show(middle)} (${show(min)}–${show(max)})`;
}

/** Three figures or so, whatever the size. */
const digitsOf = (value) => (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
