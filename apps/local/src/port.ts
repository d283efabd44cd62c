import { createServer } from 'node:net';
import { freePort } from './services/free-port.js';
import { StartError } from './start-error.js';

/** The port to use: a free one for 0, otherwise the one asked for. Throws StartError if that can't be had. */
export async function claimPort(port: number, host: string): Promise<number> {
  if (port === 0) return freePort();
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
  return new StartError(`Can't listen on ${host}:${port} (${error.message}): set HOST and PORT.`);
}
