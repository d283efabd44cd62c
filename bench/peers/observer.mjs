import http from 'node:http';

/** An HTTP server to which executions send the process of each step. */
export class Observer {
  last = new Map();
  #waiting = () => undefined;

  static async start() {
    const observer = new Observer();
    observer.server = http.createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      response.end();
      observer.last.set(request.url, { pids: text.split(' ').map(Number), at: performance.now() });
      observer.#waiting();
    });
    await new Promise((resolve) => observer.server.listen(0, '127.0.0.1', resolve));
    return observer;
  }

  urlOf(i) {
    return `http://127.0.0.1:${this.server.address().port}/${i}`;
  }

  /** Resolves when this number of executions have sent something. */
  all(count) {
    return new Promise((resolve) => {
      this.#waiting = () => this.last.size >= count && resolve();
      this.#waiting();
    });
  }

  /**
   * How long each execution of the killed process takes to make its next step in another, in ms.
   * @param kill resolves with the process id
   * @param stuckMs after that, an execution counts as stuck
   */
  async afterKill(kill, stuckMs) {
    const victim = await kill();
    const at = performance.now();
    const isVictims = ({ pids }) => pids.includes(victim);
    const lost = [...this.last].filter(([, seen]) => isVictims(seen)).map(([url]) => url);
    const went = new Map();
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, stuckMs);
      this.#waiting = () => {
        for (const url of lost) {
          const seen = this.last.get(url);
          if (!went.has(url) && seen.at > at && !isVictims(seen)) went.set(url, seen.at - at);
        }
        if (went.size === lost.length) {
          clearTimeout(timer);
          resolve();
        }
      };
      this.#waiting();
    });
    return { went: [...went.values()], stuck: lost.length - went.size };
  }

  close() {
    this.#waiting = () => undefined;
    this.server.close();
    this.server.closeAllConnections();
  }
}
