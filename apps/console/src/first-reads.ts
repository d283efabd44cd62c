// A file of its own that runs while the other code of the page is still on its way: it asks for what the page shows first, so that
// the answers are there when the code is. It imports nothing: what it imported would have to come first.

declare global {
  interface Window {
    /** Answers that are on their way, each for one use, by the token and the path. */
    batonFirstReads?: Map<string, Promise<Response>>;
  }
}

const metaOf = (name: string): string | undefined =>
  document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
const written = metaOf('baton-base');
const base = written?.startsWith('/') ? written : '';

/** Which paths the page at this address reads before all others. */
function firstPaths(): string[] {
  const audience = metaOf('baton-audience');
  if (audience === 'operators') return ['/v1/admin/whoami'];
  const { pathname, search } = window.location;
  // The list with filters is another one.
  const isList = pathname === `${base}/console/tasks` && search === '';
  return ['/v1/whoami', ...(isList ? ['/v1/tasks?limit=100'] : [])];
}

/** The token in this tab. That of an OpenID provider may have to be renewed first: it is left to the page. */
function storedToken(): string | undefined {
  try {
    const session = JSON.parse(sessionStorage.getItem('baton.session') ?? '{}') as {
      kind?: string;
      token?: string;
    };
    return session.kind === 'token' ? session.token : undefined;
  } catch {
    return undefined;
  }
}

const token = storedToken();
if (token !== undefined) {
  const authorization = `Bearer ${token}`;
  const reads = firstPaths().map((below): [string, Promise<Response>] => {
    const path = base + below;
    const read = fetch(path, { headers: { authorization } });
    // Whoever takes the answer reports the failure.
    read.catch(() => undefined);
    return [`${authorization} ${path}`, read];
  });
  window.batonFirstReads = new Map(reads);
}

export {};
