import { BASE } from '../base';

/** The OpenID provider in `/console/settings.json`. */
export interface OidcSettings {
  issuer: string;
  client_id: string;
  scope: string;
  audience?: string;
}

export interface SiteSettings {
  oidc?: OidcSettings;
}

let settings: Promise<SiteSettings> | undefined;

/** How people sign in here. */
export function consoleSettings(): Promise<SiteSettings> {
  settings ??= fetch(`${BASE}/console/settings.json`).then(
    (response) => response.json() as Promise<SiteSettings>,
  );
  settings.catch(() => (settings = undefined));
  return settings;
}
