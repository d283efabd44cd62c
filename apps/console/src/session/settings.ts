import { BASE } from '../base';

/** What `/console/settings.json` says of the OpenID provider. */
export interface OidcSettings {
  issuer: string;
  client_id: string;
  scope: string;
  audience?: string;
}

export interface ConsoleSettings {
  oidc?: OidcSettings;
}

let settings: Promise<ConsoleSettings> | undefined;

/** How people sign in here. */
export function consoleSettings(): Promise<ConsoleSettings> {
  settings ??= fetch(`${BASE}/console/settings.json`).then(
    (response) => response.json() as Promise<ConsoleSettings>,
  );
  settings.catch(() => (settings = undefined));
  return settings;
}
