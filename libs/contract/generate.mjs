/**
 * Writes the types of both APIs into `src/generated`, unless they are up to date. Run it after `nest build`: the documents come
 * from the compiled routes.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiDocuments } from './api-documents.mjs';

const OUT = fileURLToPath(new URL('src/generated/', import.meta.url));

await mkdir(OUT, { recursive: true });
for (const [audience, document] of Object.entries(apiDocuments())) {
  const file = join(OUT, `${audience}.ts`);
  const hash = createHash('sha256').update(document).digest('hex');
  const title = `// Made by libs/contract/generate.mjs of the OpenAPI document ${hash}.\n`;
  const current = await readFile(file, 'utf8').catch(() => '');
  if (current.startsWith(title)) continue;
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  await writeFile(file, title + astToString(await openapiTS(document)));
}
