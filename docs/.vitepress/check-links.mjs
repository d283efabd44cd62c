import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Throws if a link of the built site leads to a heading or a page that is not there. VitePress itself checks pages alone, and
 * not the anchors.
 * @param folder where the site is
 * @param base the path that the site has on its server
 */
export function checkLinks(folder, base) {
  const pages = new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.html'))
      .map((name) => [pathOf(name), readFileSync(join(folder, name), 'utf8')]),
  );
  const ids = new Map(
    [...pages].map(([path, html]) => [
      path,
      new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id)),
    ]),
  );
  const broken = [...pages].flatMap(([page, html]) =>
    [...html.matchAll(/<a\s[^>]*?href="([^"]+)"/g)]
      .map(([, href]) => href.replaceAll('&amp;', '&'))
      .filter((href) => !/^\w+:/.test(href))
      .filter((href) => {
        const { pathname, hash } = new URL(href, `http://site${base}${page}`);
        const target = ids.get(pathname.slice(base.length).replace(/\.html$/, ''));
        return !target || (hash !== '' && !target.has(decodeURIComponent(hash.slice(1))));
      })
      .map((href) => `${page || 'index'}: ${href}`),
  );
  if (broken.length > 0)
    throw new Error(`Links of the site lead nowhere:\n${[...new Set(broken)].join('\n')}`);
}

/** The path of a page below the base: `calling/errors` of `calling/errors.html`, and that of a folder of `index.html`. */
const pathOf = (name) => name.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '');
