import { useQueryClient } from '@tanstack/react-query';
import { createParser } from 'eventsource-parser';
import { useEffect, useState } from 'react';
import { ApiError } from '../../api/api-error';
import { answerOf, api, fetchApi } from '../../api/client';
import type { Part } from '../../components/part-view';
import { isTerminal } from './task-words';

export interface Message {
  messageId?: string;
  role?: string;
  parts?: Part[];
  metadata?: Record<string, unknown>;
}

export interface Artifact {
  artifactId: string;
  name?: string;
  parts?: Part[];
  metadata?: Record<string, unknown>;
}

/** One event of the log: the StreamResponse of A2A 1.0 with its sequence. */
export interface LogEvent {
  seq: number;
  task?: { history?: Message[]; status?: { state?: string; timestamp?: string } };
  message?: Message;
  statusUpdate?: { status: { state?: string; message?: Message; timestamp?: string } };
  artifactUpdate?: { artifact: Artifact; append?: boolean; lastChunk?: boolean };
}

export interface TaskLog {
  events: readonly LogEvent[];
  /** When events were stored, by their sequence. It comes a moment after the event. */
  times: ReadonlyMap<number, string>;
  /** `live`: it grows. `cut`: the stream has broken off and is taken up again. `ended`: the task has ended. */
  state: 'live' | 'cut' | 'ended';
  error: unknown;
}

/** How long to wait before the stream is opened again, in ms: at first, and at most. */
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** Events that are kept: the newest. A longer log is read with `npx baton tasks logs`. */
const MAX_EVENTS = 5_000;
/** Events of one burst are shown together. */
const FRAME_MS = 50;

/** Between two questions for the times of events, in ms. */
const TIMES_PAUSE_MS = 1_000;
const EMPTY: TaskLog = { events: [], times: new Map(), state: 'live', error: undefined };

/** Follows the log of a task from its beginning, over cuts of the connection, until the task has ended. */
export function useTaskLog(id: string): TaskLog {
  const queryClient = useQueryClient();
  const [log, setLog] = useState<TaskLog>(EMPTY);
  useEffect(() => {
    const abort = new AbortController();
    const follower = new Follower(id, abort.signal, setLog, () =>
      queryClient.invalidateQueries({ queryKey: ['task', id] }),
    );
    setLog(EMPTY);
    void follower.follow();
    return () => abort.abort();
  }, [id, queryClient]);
  return log;
}

class Follower {
  private events: LogEvent[] = [];
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
    private readonly changed: () => unknown,
  ) {}

  async follow(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!this.signal.aborted) {
      const before = this.last;
      try {
        await this.stream();
        const { state, events } = await answerOf(
          api.GET('/v1/tasks/{id}', { params: { path: { id: this.id } }, signal: this.signal }),
        );
        this.changed();
        if (isTerminal(state) && this.last >= events) {
          this.tell('ended');
          return;
        }
        this.tell('live');
      } catch (error) {
        // Another try would say the same. Whoever has left the page is told nothing.
        if (error instanceof ApiError && !error.isTransient) {
          this.tell('ended', error);
          return;
        }
        this.tell('cut');
      }
      pause = this.last > before ? FIRST_PAUSE_MS : Math.min(2 * pause, MAX_PAUSE_MS);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** Reads the events after the last one, until the server ends the stream or the browser is offline. */
  private async stream(): Promise<void> {
    // A stream that is open tells nothing when the network goes: it only stays silent.
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
    this.events = [...this.events, event].slice(-MAX_EVENTS);
    if (event.statusUpdate) this.changed();
    this.timer ??= setTimeout(() => this.tell('live'), FRAME_MS);
  }

  private tell(state: TaskLog['state'], error?: unknown): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.update({ ...this.shown, events: this.events, state, error });
    void this.readTimes();
  }

  private update(log: TaskLog): void {
    this.shown = log;
    if (!this.signal.aborted) this.show(log);
  }

  /** Asks when the new events were stored: a stream does not say it. Without an answer, the next events ask again. */
  private async readTimes(): Promise<void> {
    if (this.isTiming) return;
    this.isTiming = true;
    try {
      while (this.timed < this.last && !this.signal.aborted) {
        const first = this.events[0]?.seq ?? 1;
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
      // The log itself tells of connections that are gone.
    } finally {
      this.isTiming = false;
    }
  }
}

/** The artifacts as the events of a log make them: pieces put together, the newest content of each. */
export function artifactsOf(events: readonly LogEvent[]): Artifact[] {
  const byId = new Map<string, Artifact>();
  for (const { artifactUpdate } of events) {
    if (!artifactUpdate) continue;
    const { artifact, append } = artifactUpdate;
    const before = append ? byId.get(artifact.artifactId) : undefined;
    const parts = joinTexts([...(before?.parts ?? []), ...(artifact.parts ?? [])]);
    byId.set(artifact.artifactId, { ...before, ...artifact, parts });
  }
  return [...byId.values()];
}

/** Pieces of text that follow each other are one text. */
export function joinTexts(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (last?.text !== undefined && part.text !== undefined && last.mediaType === part.mediaType) {
      all[all.length - 1] = { ...last, text: last.text + part.text };
    } else all.push(part);
  }
  return all;
}
