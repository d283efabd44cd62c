/** The listeners of each channel in this process. A channel exists as long as it has a listener. */
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

  /** Passes the text to every listener of the channel. A listener that throws does not affect the others. */
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
