import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pagesIn } from './pages.js';

const ROOT = join(__dirname, '../..');
const INDEX = join(ROOT, 'docs/README.md');

const pages = pagesIn('docs', 'examples').map((name) => join(ROOT, name));

const texts = new Map<string, string>();
/** The text of a page, which is read once. */
function textOf(page: string): string {
  const text = texts.get(page) ?? readFileSync(page, 'utf8');
  texts.set(page, text);
  return text;
}

/** The text of a page without its code. */
const proseOf = (page: string): string =>
  textOf(page)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/`[^`\n]*`/g, '`');

/** The relative links of a page: `../a.md#part`. */
const linksOf = (page: string): string[] =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^\w+:/.test(link));

const anchors = new Map<string, string[]>();
/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): string[] {
  const known = anchors.get(page);
  if (known) return known;
  const headings = textOf(page)
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#+ +(.+)$/gm);
  const found = [...headings].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  );
  anchors.set(page, found);
  return found;
}

/** A link to a folder leads to all of its pages. */
function targetsOf(page: string): string[] {
  return linksOf(page).flatMap((link) => {
    const target = resolve(dirname(page), link.replace(/#.*/, '') || page);
    if (!existsSync(target)) return [];
    if (!statSync(target).isDirectory()) return [target];
    return readdirSync(target).map((name) => join(target, name));
  });
}

/** Whether a link of a page leads to a file, and to a heading of it if it names one. */
function leadsSomewhere(page: string, link: string): boolean {
  const [path, anchor] = link.split('#');
  const target = path ? resolve(dirname(page), path) : page;
  return existsSync(target) && (!anchor || anchorsOf(target).includes(anchor));
}

describe('the links of the documentation', () => {
  const links = new Map(pages.map((page) => [relative(ROOT, page), linksOf(page)]));

  it('are many', () => expect([...links.values()].flat().length).toBeGreaterThan(100));

  it.each([...links.keys()])('%s: each leads to a page and to a heading that exist', (page) => {
    const broken = links.get(page)!.filter((link) => !leadsSomewhere(join(ROOT, page), link));
    expect(broken).toEqual([]);
  });
});

it('every page of docs/ can be reached from docs/README.md', () => {
  const reached = new Set<string>();
  const visit = (page: string): void => {
    if (reached.has(page) || !page.endsWith('.md')) return;
    reached.add(page);
    targetsOf(page).forEach(visit);
  };
  visit(INDEX);
  expect(
    pages.filter((page) => relative(ROOT, page).startsWith('docs/')).filter((page) => !reached.has(page)),
  ).toEqual([]);
});

/** Code, settings and messages name pages by their path in the repository. */
it('every page that code, settings and messages name exists', () => {
  const files = ['apps', 'libs', 'test', 'bench', 'docker', 'prisma', '.ci']
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
        join(folder, name),
      ),
    )
    .filter(
      (file) => /\.(ts|m?js|cjs|sql|prisma|sh)$/.test(file) && !/\/(generated|node_modules)\//.test(file),
    );
  const named = [...files, '.env.example', 'docker-compose.yml', '.dependency-cruiser.cjs'].flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/(?<![\w.-])docs\/[\w/-]+\.md/g)].map(
      ([page]) => `${file}: ${page}`,
    ),
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !existsSync(join(ROOT, name.split(': ')[1]!)))).toEqual([]);
});
