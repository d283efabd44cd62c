import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Answer } from './wire.js';

const FOLDER = join(__dirname, '../contracts/golden');
/** Headers of answers that clients look at. */
const SHOWN = ['content-type', 'www-authenticate', 'cache-control', 'retry-after', 'a2a-extensions'];
/** What `freshId` makes. */
const FRESH_ID = /\b(m|msg)-[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g;

/**
 * Compare an exchange, byte for byte but for what differs from run to run, with the one that is kept in
 * `golden/<profile>/<name>.txt`. A file that is missing is written if UPDATE_GOLDEN is set; to renew one,
 * remove it first.
 */
export function expectGolden(profile: string, name: string, answer: Answer): void {
  const file = join(FOLDER, profile, `${name}.txt`);
  const transcript = mask(transcriptOf(answer));
  if (!existsSync(file) && process.env.UPDATE_GOLDEN) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, transcript);
  }
  expect(transcript).toBe(readFileSync(file, 'utf8'));
}

function transcriptOf({ request, status, headers, text }: Answer): string {
  const { method, path, body } = request;
  const sent = Object.entries(request.headers).filter(([, value]) => value !== undefined);
  const shown = SHOWN.filter((name) => headers[name] !== undefined).map((name) => [name, headers[name]]);
  const lines = (entries: unknown[][]) =>
    entries.map(([name, value]) => `${String(name)}: ${String(value)}\n`);
  const question = [`${method} ${path}\n`, ...lines(sent), '\n', body ? `${textOf(body)}\n\n` : ''];
  return [...question, `HTTP ${status}\n`, ...lines(shown), '\n', text, '\n'].join('');
}

const textOf = (body: string | object): string => (typeof body === 'string' ? body : JSON.stringify(body));

/** Ids are numbered as they appear, so that the same id stays the same; of times only their form is kept. */
function mask(transcript: string): string {
  const ids = new Map<string, string>();
  const numbered = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `<id-${ids.size + 1}>`);
    return ids.get(id) ?? id;
  };
  return transcript
    .replaceAll(/: heartbeat\n\n?/g, '')
    .replace(/Bearer baton_\S+/g, 'Bearer <token>')
    .replace(/(127\.0\.0\.1|localhost):\d+/g, '<host>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>')
    .replace(FRESH_ID, '$1-1')
    .replace(UUID, numbered);
}
