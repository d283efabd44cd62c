// Waits for a process of Baton that a benchmark has started.

/**
 * Resolves with the message `ready` of an API or a worker, which has its addresses. Notices for the terminal may come before.
 * @param child with a channel of IPC
 */
export const readyOf = (child, name) =>
  new Promise((resolve, reject) => {
    child.on('message', (message) => message.type === 'ready' && resolve(message));
    child.once('exit', (code) => reject(new Error(`The ${name} ended with ${code}`)));
  });
