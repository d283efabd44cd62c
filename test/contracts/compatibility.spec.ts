import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const documented = readFileSync(join(__dirname, '../../docs/calling/compatibility.md'), 'utf8');

/** Numbers that the contracts do not use. */
const UNUSED = ['A-16', 'A-18', 'A-42', 'L-3', 'L-12', 'P-12'];

const upTo = (letter: string, last: number): string[] =>
  Array.from({ length: last }, (_, i) => `${letter}-${i + 1}`).filter((line) => !UNUSED.includes(line));

describe('docs/calling/compatibility.md', () => {
  it('is what the names of the contract tests make it', () => {
    const made = execFileSync(process.execPath, [join(__dirname, 'compatibility.mjs'), '--print'], {
      encoding: 'utf8',
    });
    expect(documented).toBe(made);
  });

  it('has every line of the contracts, once', () => {
    const lines = [...documented.matchAll(/^\| ([A-Z]-\d+) /gm)].map(([, line]) => line);
    const contracts = Object.entries({ A: 48, L: 16, C: 8, S: 9, O: 13, P: 14 });
    expect(lines).toEqual(contracts.flatMap(([letter, last]) => upTo(letter, last)));
  });
});
