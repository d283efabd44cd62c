import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const SIDEBAR = join(__dirname, '../../docs/.vitepress/sidebar.mjs');

interface Item {
  text: string;
  items?: Item[];
}

/** The site reads it as an ES module, which Jest does not. */
function textsOfSidebar(): string[] {
  const script = `import { sidebar } from ${JSON.stringify(SIDEBAR)}; console.log(JSON.stringify(sidebar()))`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  const all = (items: Item[]): string[] =>
    items.flatMap(({ text, items: more = [] }) => [text, ...all(more)]);
  return all(JSON.parse(printed) as Item[]);
}

it('the sidebar of the docs shows text, not Markdown', () => {
  const texts = textsOfSidebar();
  expect(texts).toContain('The extension resume');
  expect(texts.filter((text) => /[`*]/.test(text))).toEqual([]);
});
