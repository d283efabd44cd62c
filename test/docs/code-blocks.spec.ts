import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');

const pages = [
  ...readdirSync(ROOT),
  ...['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  ),
].filter((name) => name.endsWith('.md') && !name.includes('node_modules'));

// The site colours code by its language. `text` is a language, too.
it.each(pages)('%s: each block of code names its language', (page) => {
  const fences = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^ *```(.*)$/gm)].map(
    ([, name]) => name,
  );
  // Every second fence ends a block.
  expect(fences.filter((name, i) => i % 2 === 0 && name === '').length).toBe(0);
  expect(fences.filter((name, i) => i % 2 === 1 && name !== '')).toEqual([]);
});
