/** The stream of an answer ended before the answer was complete. The message says more, or is empty. */
export class BrokenAnswer extends Error {}
