import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { completed } from './generated-parts.mjs';

/**
 * Writes each page as Markdown beside its HTML (`/calling/errors.md`), and their list as `/llms.txt` (https://llmstxt.org), for
 * programs that read the docs.
 * @param {import('vitepress').SiteConfig} config
 */
export function writeMarkdownPages({ srcDir, outDir, pages, rewrites, site }) {
  const read = (page) => readFileSync(join(srcDir, page), 'utf8');
  for (const page of pages) {
    const text = read(page);
    const file = join(outDir, rewrites.map[page] ?? page);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, completed(text, page) ?? text);
  }
  // The lists of the index are those of llms.txt.
  const [, ...lists] = read('README.md').split(/^(?=## )/m);
  const links = lists.join('').replaceAll(/\]\(([^):#]+)(?=[)#])/g, (_, path) => {
    return `](${site.base}${path.replace(/\/$/, '/index.md')}`;
  });
  writeFileSync(join(outDir, 'llms.txt'), `# ${site.title}\n\n> ${site.description}\n\n${links}`);
}
