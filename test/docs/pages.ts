import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');

/** The Markdown files at the top of the repository, and those below these folders, as paths from its top. */
export const pagesIn = (...folders: string[]): string[] =>
  [
    ...readdirSync(ROOT),
    ...folders.flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name}`,
      ),
    ),
  ].filter((name) => name.endsWith('.md') && !name.includes('node_modules'));
