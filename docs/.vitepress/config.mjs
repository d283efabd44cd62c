// The site of these pages. On GitHub the same files are read as they are, so nothing in a page is for the site alone.
import { posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { completed } from './generated-parts.mjs';
import { writeMarkdownPages } from './markdown-pages.mjs';
import { sidebar } from './sidebar.mjs';

const DOCS = fileURLToPath(new URL('..', import.meta.url));

/**
 * Where the files of the repository can be read, such as `https://git.example.com/baton/blob/main`. Pages link to files outside
 * of this folder. Without an address the text of such a link stays, and the link goes.
 */
const REPOSITORY = process.env.DOCS_REPOSITORY?.replace(/\/+$/, '');

/** The anchor of a heading, as GitHub makes it. test/docs/links.spec.ts checks links with the same rule. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

/** The path in the repository that a link leads to, if that is outside of this folder. */
function outside(href, page) {
  if (!href || /^(\w+:|#|\/)/.test(href)) return undefined;
  const target = posix.join('docs', posix.dirname(page), href);
  return target.startsWith('docs/') ? undefined : target;
}

/** Points links that leave this folder to the repository, or takes them out. */
function linkOutside(md) {
  md.core.ruler.push('links-outside', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let removed = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const target = outside(token.attrGet('href'), env.relativePath ?? '');
          removed = target !== undefined && REPOSITORY === undefined;
          if (target !== undefined && !removed) token.attrSet('href', `${REPOSITORY}/${target}`);
        }
        if (removed && token.type.startsWith('link_')) {
          if (token.type === 'link_close') removed = false;
          Object.assign(token, { type: 'text', content: '', attrs: null });
        }
      }
    }
  });
}

export default defineConfig({
  lang: 'en',
  title: 'Baton',
  description: 'A durable, multi-tenant server for agents that speak the Agent2Agent protocol (A2A)',
  base: process.env.DOCS_BASE ?? '/',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${process.env.DOCS_BASE ?? '/'}icon.svg` }]],
  // Leads programs to the Markdown of the page.
  transformHead: ({ pageData, siteData }) => [
    ['link', { rel: 'alternate', type: 'text/markdown', href: `${siteData.base}${pageData.relativePath}` }],
  ],
  outDir: '../dist/docs',
  cleanUrls: true,
  rewrites: { 'README.md': 'index.md', 'inside/adr/README.md': 'inside/adr/index.md' },
  srcExclude: ['node_modules/**'],
  markdown: { anchor: { slugify }, toc: { slugify }, config: linkOutside },
  vite: {
    plugins: [
      {
        name: 'generated-parts',
        enforce: 'pre',
        transform: (text, id) => (id.endsWith('.md') ? completed(text, relative(DOCS, id)) : undefined),
      },
    ],
  },
  // Pages name what runs on the reader's machine.
  ignoreDeadLinks: 'localhostLinks',
  buildEnd: writeMarkdownPages,
  themeConfig: {
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        _render: (text, env, md) => md.render(completed(text, relative(DOCS, env.path)) ?? text, env),
      },
    },
  },
});
