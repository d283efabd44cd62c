import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { freePort } from '../../support/ports.js';

/** Starts Keycloak; prepares it with `--prepare`. */
export const RUN = join(__dirname, 'run');

type Json = Record<string, unknown>;

/** Keycloak in a process of its own, with everything in memory. */
export class Keycloak {
  private token = '';

  private constructor(
    private readonly server: ChildProcess,
    /** Where it listens. */
    readonly url: string,
  ) {}

  static async start(): Promise<Keycloak> {
    const port = String(await freePort());
    const server = spawn('bash', [RUN, '--http-port', port], { stdio: ['ignore', 'pipe', 'inherit'] });
    const said: string[] = [];
    for await (const line of createInterface(server.stdout)) {
      said.push(line);
      if (line.includes('Listening on:')) break;
    }
    server.stdout.resume();
    if (server.exitCode !== null || !said.at(-1)?.includes('Listening on:')) throw new Error(said.join('\n'));
    return new Keycloak(server, `http://127.0.0.1:${port}`);
  }

  async stop(): Promise<void> {
    const ended = once(this.server, 'exit');
    this.server.kill('SIGTERM');
    await ended;
  }

  /** A realm: its users, clients and roles, as its export has them. */
  async createRealm(realm: Json & { realm: string }): Promise<void> {
    await this.admin('POST', '/admin/realms', realm);
  }

  issuer(realm: string): string {
    return `${this.url}/realms/${realm}`;
  }

  /** An access token of a user, whose password is its name, for the client `app`. */
  async userToken(realm: string, username: string): Promise<string> {
    return this.grant(realm, { grant_type: 'password', client_id: 'app', username, password: username });
  }

  /** How many sessions of a user there are at a client. */
  async sessionsAt(realm: string, username: string, clientId: string): Promise<number> {
    const of = `/admin/realms/${realm}`;
    const [user] = (await this.admin('GET', `${of}/users?exact=true&username=${username}`)) as {
      id: string;
    }[];
    const sessions = (await this.admin('GET', `${of}/users/${user!.id}/sessions`)) as {
      clients: Record<string, string>;
    }[];
    return sessions.filter(({ clients }) => Object.values(clients).includes(clientId)).length;
  }

  private async grant(realm: string, form: Record<string, string>): Promise<string> {
    const response = await fetch(`${this.issuer(realm)}/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    });
    const { access_token: token } = (await response.json()) as { access_token?: string };
    if (token === undefined) throw new Error(`Keycloak gives no token: ${response.status}`);
    return token;
  }

  private async admin(method: string, path: string, body?: Json): Promise<unknown> {
    const admin = { client_id: 'admin-cli', username: 'admin', password: 'admin' };
    this.token ||= await this.grant('master', { grant_type: 'password', ...admin });
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`);
    return answer === '' ? {} : JSON.parse(answer);
  }
}
