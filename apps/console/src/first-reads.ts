// A file of its own that runs while the other code of the page is still on its way: it sends the first requests of the page, so
// that the answers arrive with the code. It imports nothing: an import would delay it.

declare global {
  interface Window {
    /** Answers that are on their way, each for one use, by the token and the path. */
    batonFirstReads?: Map<string, Promise<Response>>;
  }
}

/** An answer that the page has not read by then is dropped: the page has sent the request itself. */
const UNUSED_MS = 5_000;

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
  const below = `${base}/console/tasks/`;
  const id = pathname.startsWith(below) ? pathname.slice(below.length) : '';
  return [
    '/v1/whoami',
    ...(isList ? ['/v1/tasks?limit=100'] : []),
    ...(/^[\w-]+$/.test(id)
      ? [`/v1/tasks/${id}`, ...(isTraceShown(search) ? [`/v1/tasks/${id}/trace`] : [])]
      : []),
  ];
}

/** Whether the page of a task shows its trace first: see `task-tabs.ts`. */
function isTraceShown(search: string): boolean {
  try {
    return (
      (new URLSearchParams(search).get('tab') ?? localStorage.getItem('baton-task-tab') ?? 'trace') ===
      'trace'
    );
  } catch {
    return false;
  }
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
  const reads: [string, Promise<Response>][] = [];
  for (const below of firstPaths()) {
    const path = base + below;
    const ask = (): Promise<Response> => fetch(path, { headers: { authorization } });
    // Reading a large trace takes the server longer: the request for the caller is first.
    const read = below.endsWith('/trace') && reads[0] ? reads[0][1].then(ask) : ask();
    // The page that takes the answer reports the failure.
    read.catch(() => undefined);
    const key = `${authorization} ${path}`;
    reads.push([key, read]);
    // An answer that no page reads keeps its connection, and is old when it is taken later.
    setTimeout(() => {
      if (window.batonFirstReads?.delete(key) === true)
        read.then(({ body }) => body?.cancel()).catch(() => undefined);
    }, UNUSED_MS);
  }
  window.batonFirstReads = new Map(reads);
}

export {};
