/** An endless loop: nothing else of its process gets a turn, no timer and no cancel. */
export default {
  async execute() {
    for (;;);
  },
  cancelTask: async () => undefined,
};
