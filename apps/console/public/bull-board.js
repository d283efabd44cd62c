// Runs before Bull Board, which knows nothing of tokens: its requests get the token with which the operator has signed in to the
// console. Both are at one origin, and the token is in the storage of this tab alone (src/session/session.ts).
(() => {
  const CONSOLE = '/console/operators/queue';
  const session = JSON.parse(sessionStorage.getItem('baton.session') ?? 'null');
  // The console lets people sign in, and leads back here.
  if (session?.kind !== 'token') location.replace(CONSOLE);
  const api = new URL('api/', document.baseURI);
  const { open } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.open = function openSigned(method, url, ...rest) {
    open.call(this, method, url, ...rest);
    const { origin, pathname } = new URL(url, document.baseURI);
    if (origin !== api.origin || !pathname.startsWith(api.pathname)) return;
    this.setRequestHeader('authorization', `Bearer ${session?.token}`);
    this.addEventListener('load', () => {
      if (this.status === 401) location.replace(CONSOLE);
    });
  };
})();
