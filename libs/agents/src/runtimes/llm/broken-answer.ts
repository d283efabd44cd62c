/** The stream of an answer ended before the answer was complete. The message has details, or is empty. */
export class BrokenAnswer extends Error {}
