import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { decisions } from './generated-parts.mjs';

const DOCS = new URL('..', import.meta.url);

/**
 * The sidebar: the headings and the lists of README.md, in their order. Throws if a page is in no list: readers of the site
 * would not find it.
 */
export function sidebar() {
  const [, ...parts] = readFileSync(new URL('README.md', DOCS), 'utf8').split(/^## /m);
  const groups = parts.map((part) => ({
    text: part.split('\n', 1)[0],
    items: [...part.matchAll(/^- \[([^\]]+)\]\(([^)]+)\)/gm)].map(([, text, path]) => itemOf(text, path)),
  }));
  const listed = new Set(groups.flatMap(({ items }) => items.map(({ link }) => link)));
  const missing = pages().filter((page) => !listed.has(page));
  if (missing.length > 0)
    throw new Error(`docs/README.md lists no ${missing.join(', ')}: add each to a list`);
  return groups;
}

/** The sidebar shows text as it is: backticks of code would be seen. */
const plain = (text) => text.replaceAll('`', '');

function itemOf(title, path) {
  const text = plain(title);
  const link = `/${path.replace(/\.md$/, '')}`;
  if (!existsSync(new URL(path, DOCS))) throw new Error(`docs/README.md: there is no ${path}`);
  if (path !== 'inside/adr/') return { text, link };
  return {
    text,
    link,
    collapsed: true,
    items: decisions().map((each) => ({ text: plain(each.text), link: `${link}${each.link}` })),
  };
}

/** The links of all pages, but the index and the decisions. */
const pages = () =>
  readdirSync(DOCS, { withFileTypes: true })
    .filter((folder) => folder.isDirectory() && /^\w/.test(folder.name) && folder.name !== 'node_modules')
    .flatMap(({ name }) => readdirSync(new URL(`${name}/`, DOCS)).map((file) => `/${name}/${file}`))
    .filter((path) => path.endsWith('.md'))
    .map((path) => path.replace(/\.md$/, ''));
