import { useQueryClient } from '@tanstack/react-query';
import { createParser } from 'eventsource-parser';
import { useEffect, useState } from 'react';
import { ApiError } from '../../api/api-error';
import { answerOf, api, fetchApi } from '../../api/client';
import { addToArtifacts, type Artifact, type ArtifactUpdate, type Message } from '../../a2a/artifacts';
import { isTerminal } from '../../a2a/task-states';
import { type Task } from './task-words';

/** One event of the log: the StreamResponse of A2A 1.0 with its sequence. */
export interface LogEvent {
  seq: number;
  task?: { history?: Message[]; status?: { state?: string; timestamp?: string } };
  message?: Message;
  statusUpdate?: { status: { state?: string; message?: Message; timestamp?: string } };
  artifactUpdate?: ArtifactUpdate;
}

export interface TaskLog {
  /** The newest events. */
  events: readonly LogEvent[];
  /** The first event of the log, which has the first message, however long the log is. */
  first: LogEvent | undefined;
  /** What all events together have made, those that are no longer kept included. */
  artifacts: readonly Artifact[];
  /** Sequence of the last event. */
  last: number;
  /** When events were stored, by their sequence. It comes a moment after the event. */
  times: ReadonlyMap<number, string>;
  /** `live`: it grows. `cut`: the stream has broken off and is taken up again. `ended`: the task has ended. */
  state: 'live' | 'cut' | 'ended';
  error: unknown;
}

/** Before the stream is opened again. It doubles with each try. */
const FIRST_PAUSE_MS = 500;
/** A person waits: the longest pause is short. */
const MAX_PAUSE_MS = 10_000;
/** Events that are kept: the newest. A longer log is read with `baton tasks logs`. */
const MAX_EVENTS = 5_000;
/** Events of one burst are shown together: 20 times a second appears continuous. */
const FRAME_MS = 50;
/** `FRAME_MS` of a long log, which takes the browser longer to show. */
const LONG_FRAME_MS = 500;
/** Events from which a log counts as long. */
const LONG_LOG = 1_000;

/** Between two questions for the times of events, in ms. */
const TIMES_PAUSE_MS = 1_000;
const EMPTY: TaskLog = {
  events: [],
  first: undefined,
  artifacts: [],
  last: 0,
  times: new Map(),
  state: 'live',
  error: undefined,
};

/** Follows the log of a task from its beginning, over cuts of the connection, until the task has ended. */
export function useTaskLog(id: string): TaskLog {
  const queryClient = useQueryClient();
  const [log, setLog] = useState<TaskLog>(EMPTY);
  useEffect(() => {
    const abort = new AbortController();
    const follower = new Follower(id, abort.signal, setLog, {
      changed: () => queryClient.invalidateQueries({ queryKey: ['task', id] }),
      read: (task) => queryClient.setQueryData(['task', id], task),
    });
    setLog(EMPTY);
    void follower.follow();
    return () => abort.abort();
  }, [id, queryClient]);
  return log;
}

/** Listener for the task itself. */
interface TaskListener {
  /** Its status has changed. */
  changed: () => unknown;
  read: (task: Task) => unknown;
}

class Follower {
  private readonly events: LogEvent[] = [];
  private first: LogEvent | undefined;
  private readonly artifacts = new Map<string, Artifact>();
  private last = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = EMPTY;
  /** Up to this event the times are known. */
  private timed = 0;
  private isTiming = false;

  constructor(
    private readonly id: string,
    private readonly signal: AbortSignal,
    private readonly show: (log: TaskLog) => void,
    private readonly listener: TaskListener,
  ) {}

  async follow(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.signal.aborted) {
      const before = this.last;
      try {
        await this.stream();
        const task = await answerOf(
          api.GET('/v1/tasks/{id}', { params: { path: { id: this.id } }, signal: this.signal }),
        );
        const { state, events } = task;
        this.listener.read(task);
        if (isTerminal(state) && this.last >= events) {
          this.report('ended');
          return;
        }
        this.report('live');
      } catch (error) {
        // Another try would have the same result. A page that is closed shows nothing.
        if (error instanceof ApiError && !error.isTransient) {
          this.report('ended', error);
          return;
        }
        this.report('cut');
      }
      pause = this.last > before ? FIRST_PAUSE_MS : Math.min(2 * pause, MAX_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** Reads the events after the last one, until the server ends the stream or the browser is offline. */
  private async stream(): Promise<void> {
    // An open stream reports no error when the network fails: it only stays silent.
    const offline = new AbortController();
    const end = (): void => offline.abort();
    window.addEventListener('offline', end);
    try {
      await this.readEvents(AbortSignal.any([this.signal, offline.signal]));
    } finally {
      window.removeEventListener('offline', end);
    }
  }

  private async readEvents(signal: AbortSignal): Promise<void> {
    const response = await fetchApi(`/v1/tasks/${encodeURIComponent(this.id)}/events`, {
      headers: { accept: 'text/event-stream', 'last-event-id': String(this.last) },
      signal,
    });
    const parser = createParser({ onEvent: ({ data }) => this.take(JSON.parse(data) as LogEvent) });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let chunk = await reader?.read(); chunk && !chunk.done; chunk = await reader?.read()) {
      parser.feed(chunk.value);
    }
  }

  private take(event: LogEvent): void {
    if (event.seq <= this.last) return;
    this.last = event.seq;
    this.first ??= event;
    this.events.push(event);
    if (this.events.length > 2 * MAX_EVENTS) this.events.splice(0, MAX_EVENTS);
    if (event.artifactUpdate) addToArtifacts(this.artifacts, event.artifactUpdate);
    if (event.statusUpdate) this.listener.changed();
    this.timer ??= setTimeout(() => this.report('live'), event.seq > LONG_LOG ? LONG_FRAME_MS : FRAME_MS);
  }

  private report(state: TaskLog['state'], error?: unknown): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const events = this.events.slice(-MAX_EVENTS);
    const artifacts = [...this.artifacts.values()];
    this.update({ ...this.shown, events, first: this.first, artifacts, last: this.last, state, error });
    void this.readTimes();
  }

  private update(log: TaskLog): void {
    this.shown = log;
    if (!this.signal.aborted) this.show(log);
  }

  /** Reads when the new events were stored: a stream does not have it. Without an answer, the next events ask again. */
  private async readTimes(): Promise<void> {
    if (this.isTiming) return;
    this.isTiming = true;
    try {
      while (this.timed < this.last && !this.signal.aborted) {
        const first = this.events.at(-MAX_EVENTS)?.seq ?? 1;
        const { times, more } = await answerOf(
          api.GET('/v1/tasks/{id}/event-times', {
            params: { path: { id: this.id }, query: { since_seq: Math.max(this.timed, first - 1) } },
            signal: this.signal,
          }),
        );
        this.timed = times.at(-1)?.seq ?? this.last;
        this.update({
          ...this.shown,
          times: new Map([...this.shown.times, ...times.map(({ seq, at }) => [seq, at] as const)]),
        });
        if (!more) await new Promise((resolve) => setTimeout(resolve, TIMES_PAUSE_MS));
      }
    } catch {
      // The log itself reports lost connections.
    } finally {
      this.isTiming = false;
    }
  }
}
