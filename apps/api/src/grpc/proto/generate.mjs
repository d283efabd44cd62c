// npm run proto: compiles the .proto files of this folder into ../descriptors.ts. With --check it writes nothing, and exits with 1 if
// that file is not what the folder compiles to.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = dirname(fileURLToPath(import.meta.url));
const TARGET = join(FOLDER, '../descriptors.ts');
const BUF = join(FOLDER, '../../../../../node_modules/.bin/buf');

const set = execFileSync(
  BUF,
  ['build', FOLDER, '--as-file-descriptor-set', '--exclude-source-info', '--output', '-#format=binpb'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
const lines = set.toString('base64').match(/.{1,112}/g);
const source = `/**
 * The protocol buffers of the gRPC port: a google.protobuf.FileDescriptorSet in base64, made of the folder \`proto\` by
 * \`npm run proto\`. Do not edit.
 */
export const DESCRIPTOR_SET = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('');
`;

if (!process.argv.includes('--check')) writeFileSync(TARGET, source);
else if (readFileSync(TARGET, 'utf8') !== source) {
  console.error('descriptors.ts is stale: run npm run proto');
  process.exitCode = 1;
}
