// BATON_URL=http://localhost:8080/agents/echo/ BATON_TOKEN=… node test/interop/javascript/main.mjs
// Calls the agent with @a2a-js/sdk, newest and last 0.3, over each binding. Prints a line for each check, as TAP does.
import { CHECKS } from './checks.mjs';
import * as v03 from './sdk-0.3.mjs';
import * as v10 from './sdk-1.0.mjs';

const SDKS = {
  '1.0': { ...v10, without: [] },
  // 0.3 has neither. Its cards have no signature.
  0.3: { ...v03, without: ['list', 'signed card', 'old text'] },
};

const baseUrl = process.env.BATON_URL;
const fetchAs = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${process.env.BATON_TOKEN}`);
  return fetch(input, { ...init, headers });
};
const context = { baseUrl, origin: new URL(baseUrl).origin, token: process.env.BATON_TOKEN, fetchAs };

async function check(name, run) {
  try {
    await run();
    console.log(`ok - ${name}`);
  } catch (error) {
    process.exitCode = 1;
    const text = error instanceof Error ? error.stack : String(error);
    console.log(`not ok - ${name}\n${text.replaceAll(/^/gm, '# ')}`);
  }
}

for (const [version, { BINDINGS, connect, without }] of Object.entries(SDKS)) {
  for (const binding of BINDINGS) {
    for (const [name, run] of Object.entries(CHECKS)) {
      if (without.includes(name)) continue;
      await check(`${version} ${binding}: ${name}`, async () =>
        run(await connect(binding, context), { ...context, without }),
      );
    }
  }
}
