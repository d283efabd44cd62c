import getPort from 'get-port';
import { createServer } from 'node:net';
import { StartError } from './start-error.js';

/** The port to use: a free one for 0, otherwise the given one. Throws StartError if it is not available. */
export async function claimPort(port: number, host: string): Promise<number> {
  if (port === 0) return getPort({ host });
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => reject(explain(error, port, host)));
    server.listen(port, host, () => server.close(() => resolve()));
  });
  return port;
}

function explain(error: NodeJS.ErrnoException, port: number, host: string): Error {
  if (error.code === 'EADDRINUSE') {
    return new StartError(
      `Port ${port} is taken: stop what uses it, or choose another, e.g. \`PORT=${port + 1} npm start\`.`,
    );
  }
  if (error.code === 'EACCES') {
    return new StartError(
      `Port ${port} is not allowed: set PORT to 1024 or above, e.g. \`PORT=8080 npm start\`.`,
    );
  }
  return new StartError(`Cannot listen on ${host}:${port} (${error.message}): set HOST and PORT.`);
}
