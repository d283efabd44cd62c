import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

const agent = new http.Agent({ keepAlive: true, maxSockets: 512 });

/** One POST of a text. Rejects unless it is answered with 200. @returns the body */
export function post(url, text, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: 'POST', agent, headers }, async (response) => {
      let body = '';
      for await (const chunk of response.setEncoding('utf8')) body += chunk;
      if (response.statusCode === 200 || response.statusCode === 202) resolve(body);
      else reject(new Error(`${url}: ${response.statusCode} ${body.slice(0, 300)}`));
    });
    request.on('error', reject);
    request.end(text);
  });
}

/** Events of SSE in a body. */
export const eventsIn = (body) => body.split('data: ').length - 1;

/** Repeats what fails until it does not. */
export async function until(work) {
  for (;;) {
    try {
      const answer = await work();
      if (answer?.ok !== false) return;
    } catch (error) {
      if (process.env.DEBUG) console.error(error.message);
    }
    await delay(200);
  }
}
