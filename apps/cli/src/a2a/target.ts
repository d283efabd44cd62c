import { type EnvironmentSource, loadLocalEnvironment } from '@baton/config';
import { join } from 'node:path';
import { OperatorError } from '../operator-error.js';
import { readStateFile } from '../state-file.js';

/** A server, and the token to call it with. */
export interface Target {
  url: string;
  token: string;
}

/**
 * The server to call: what the options say, else BATON_URL and BATON_TOKEN, and for the rest the demo of the `npm start` in this folder
 * (`<BATON_HOME>/demo.json`). The demo's token is never sent to another server. Throws OperatorError.
 */
export function findTarget(source: EnvironmentSource, options: { url?: string; token?: string }): Target {
  const path = join(loadLocalEnvironment(source).home, 'demo.json');
  const demo = readStateFile(path);
  const url = options.url ?? (source.BATON_URL?.trim() || demo?.url);
  if (typeof url !== 'string') {
    throw new OperatorError(
      'No server is known: give --url and --token, or start Baton with `npm start` here.',
    );
  }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new OperatorError(`--url: "${url}" is not an http(s) URL: give one such as http://localhost:8080.`);
  }
  const ownToken = source.BATON_TOKEN?.trim();
  const token = options.token ?? (ownToken || (isSameServer(url, demo?.url) ? demo?.token : undefined));
  if (typeof token !== 'string') {
    throw new OperatorError(`No token for ${url} is known: give --token, from npx baton tokens create.`);
  }
  return { url, token };
}

const isSameServer = (url: string, demoUrl: unknown): boolean =>
  typeof demoUrl === 'string' && URL.canParse(demoUrl) && new URL(demoUrl).origin === new URL(url).origin;
