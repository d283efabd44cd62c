import type { Unsubscribe } from './messaging.js';
import type { QuietLog } from './outages.js';

/** Who listens to which channel in this process; a channel exists as long as it has a listener. */
export class ChannelListeners {
  private readonly byChannel = new Map<string, Set<(text: string) => void>>();

  /** @returns whether the channel is new */
  add(channel: string, listener: (text: string) => void): boolean {
    const listeners = this.byChannel.get(channel);
    if (listeners) {
      listeners.add(listener);
      return false;
    }
    this.byChannel.set(channel, new Set([listener]));
    return true;
  }

  /** @returns whether that was the channel's last listener */
  remove(channel: string, listener: (text: string) => void): boolean {
    const listeners = this.byChannel.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return false;
    this.byChannel.delete(channel);
    return true;
  }

  has(channel: string): boolean {
    return this.byChannel.has(channel);
  }

  channels(): string[] {
    return [...this.byChannel.keys()];
  }

  /** Hands the text to every listener of the channel; a listener that throws does not rob the others. */
  dispatch(channel: string, text: string, failed: (error: unknown) => void): void {
    for (const listener of this.byChannel.get(channel) ?? []) {
      try {
        listener(text);
      } catch (error) {
        failed(error);
      }
    }
  }
}

/** Who wants to know that a lost connection is back. */
export class ReconnectListeners {
  private readonly listeners = new Set<() => void>();

  constructor(private readonly log: QuietLog) {}

  add(listener: () => void): Unsubscribe {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  call(): void {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (error) {
        this.log.warn('reconnect listener failed', error);
      }
    }
  }
}
