export default {
  execute: () => process.kill(process.pid, 'SIGKILL'),
  cancelTask: async () => undefined,
};
