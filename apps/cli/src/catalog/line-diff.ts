/** Unchanged lines that are shown around changed ones. */
const CONTEXT = 2;

interface Line {
  sign: ' ' | '-' | '+';
  text: string;
}

/**
 * What makes one text another, line by line: `- ` before a line that goes, `+ ` before one that comes, some
 * unchanged lines around them, `…` for the rest. Empty if they are the same.
 */
export function diffLines(before: string, after: string): string[] {
  const lines = align(linesOf(before), linesOf(after));
  const isNear = (at: number): boolean =>
    lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some(({ sign }) => sign !== ' ');
  const shown = lines.map(({ sign, text }, at) => (isNear(at) ? `${sign} ${text}` : '…'));
  const folded = shown.filter((line, at) => line !== '…' || shown[at - 1] !== '…');
  return folded.every((line) => line === '…') ? [] : folded;
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

/** By the longest common subsequence. */
function align(before: readonly string[], after: readonly string[]): Line[] {
  const longest = commonLengths(before, after);
  const at = (i: number, j: number): number => longest[i]?.[j] ?? 0;
  const lines: Line[] = [];
  for (let [i, j] = [0, 0]; i < before.length || j < after.length;) {
    const [goes, comes] = [before[i], after[j]];
    if (goes !== undefined && goes === comes) {
      lines.push({ sign: ' ', text: goes });
      [i, j] = [i + 1, j + 1];
    } else if (goes !== undefined && (comes === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: '-', text: goes });
      i += 1;
    } else {
      lines.push({ sign: '+', text: comes ?? '' });
      j += 1;
    }
  }
  return lines;
}

/** How many lines are in common, in order, of what begins at i and what begins at j, by i and j. */
function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
  let below = Array.from({ length: after.length + 1 }, () => 0);
  const table = [below];
  for (const line of before.toReversed()) {
    const row = Array.from({ length: after.length + 1 }, () => 0);
    for (let j = after.length - 1; j >= 0; j--) {
      row[j] = line === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
    }
    table.push(row);
    below = row;
  }
  return table.reverse();
}
