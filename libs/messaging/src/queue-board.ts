import type {
  AppControllerRoute,
  BullBoardQueues,
  IServerAdapter,
  UIConfig,
} from '@bull-board/api/dist/types.js';
import type { Queue } from 'bullmq';

/** What Bull Board answers: JSON. */
export interface BoardAnswer {
  status: number;
  body: unknown;
}

/** Schedules that one answer shows. The board would read all of them, and a job of each. */
const MAX_SCHEDULERS = 100;

/** What Bull Board shows, and its page reads. */
export const BOARD_SETTINGS: UIConfig = {
  boardTitle: 'Queues of Baton',
  favIcon: { default: 'static/images/logo.svg', alternative: 'static/favicon-32x32.png' },
  miscLinks: [{ text: 'Console of operators', url: '/console/operators/queue' }],
  hideDocsLink: true,
  locale: { lng: 'en-US' },
  // It would list all connections of Redis with every answer. The console has the workers.
  showWorkers: false,
};

/**
 * Bull Board over queues, for reading alone: it has no route that writes, and knows its queues as read-only besides.
 * Jobs hold only ids, and no contents of tasks.
 */
export class QueueBoard {
  private queues: BullBoardQueues = new Map();
  private routes: readonly AppControllerRoute[] = [];
  private settings: UIConfig = BOARD_SETTINGS;

  /** Loads Bull Board: a process that nobody asks for it never does. */
  static async over(queues: readonly Queue[]): Promise<QueueBoard> {
    const [{ createBullBoard }, { BullMQAdapter }] = await Promise.all([
      import('@bull-board/api'),
      import('@bull-board/api/bullMQAdapter'),
    ]);
    class ReadOnlyQueue extends BullMQAdapter {
      constructor(private readonly source: Queue) {
        super(source, { readOnlyMode: true });
      }

      override async getJobSchedulers() {
        const found = await this.source.getJobSchedulers(0, MAX_SCHEDULERS - 1, true);
        return found.map(({ key, name, pattern, tz, startDate, next, iterationCount, template }) => ({
          id: key,
          name,
          pattern,
          tz,
          startDate,
          next: next ?? undefined,
          iterationCount,
          template,
        }));
      }
    }
    const board = new QueueBoard();
    createBullBoard({
      queues: queues.map((queue) => new ReadOnlyQueue(queue)),
      serverAdapter: board.adapter(),
      options: { uiConfig: BOARD_SETTINGS },
    });
    return board;
  }

  /**
   * Answers what the page asks for. @param path below the page, such as `/api/queues` @returns undefined: there is no such path
   * to read
   */
  async read(path: string, query: Record<string, string>): Promise<BoardAnswer | undefined> {
    for (const route of this.routes) {
      const [params] = [route.route].flat().flatMap((pattern) => {
        const found = paramsOf(pattern, path);
        return found ? [found] : [];
      });
      if (!params) continue;
      const request = { queues: this.queues, uiConfig: this.settings, params, query };
      const { status = 200, body } = await route.handler({ ...request, body: {}, headers: {} });
      return { status, body };
    }
    return undefined;
  }

  /** How Bull Board hands over its routes. Pages and files are served elsewhere. */
  private adapter(): IServerAdapter {
    const adapter: IServerAdapter = {
      setQueues: (queues) => ((this.queues = queues), adapter),
      setUIConfig: (settings) => ((this.settings = settings), adapter),
      setApiRoutes: (routes) => {
        this.routes = routes.filter(({ method }) => [method].flat().every((each) => each === 'get'));
        return adapter;
      },
      setViewsPath: () => adapter,
      setStaticPath: () => adapter,
      setEntryRoute: () => adapter,
      setErrorHandler: () => adapter,
    };
    return adapter;
  }
}

/** The parameters of a path, if it is one of this pattern: `/api/queues/:queueName`. */
function paramsOf(pattern: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    if (segment.startsWith(':')) params[segment.slice(1)] = given[i] ?? '';
    else if (segment !== given[i]) return undefined;
  }
  return params;
}
