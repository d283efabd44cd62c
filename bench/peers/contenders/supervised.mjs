/** A process that is started again at once when it was killed. @param start resolves with a child process that is ready */
export async function supervised(start) {
  let child = await start();
  return {
    pid: () => child.pid,
    /** `kill -9`. @returns the process id */
    kill: () => {
      const { pid } = child;
      child.kill('SIGKILL');
      void start().then((next) => (child = next));
      return pid;
    },
    stop: () => child.kill('SIGKILL'),
  };
}
