// SPDX-License-Identifier: Apache-2.0
import {parseCount} from '../model/time_base';

import {kPageTimers, Timers} from './layout_refresher';

const kAgainMs = 3000;

export interface WatchUpdate {
  state: string;
  version: string;
  endNs: string;
  events: number;
}

export interface WatchListener {
  captureChanged(update: WatchUpdate): void;
  // The aggregator does not send changes: it is away, has no such capture, or too many pages follow captures.
  watchRefused(): void;
  // It sends them again, or for the first time.
  watchOpened(): void;
}

// Follows a capture by server-sent events. A browser connects again after a connection broke, but not after a refusal;
// the watch does, until it is closed.
export class LiveWatch {
  private source: EventSource;
  private timer = 0;

  constructor(
      private readonly api: {watch(captureId: string): EventSource}, private readonly captureId: string,
      private readonly listener: WatchListener, private readonly timers: Timers = kPageTimers) {
    this.source = this.connect();
  }

  get isOpen(): boolean {
    return this.source.readyState === this.source.OPEN;
  }

  close(): void {
    this.timers.clear(this.timer);
    this.source.close();
  }

  private connect(): EventSource {
    const source = this.api.watch(this.captureId);
    source.onopen = () => this.listener.watchOpened();
    source.onerror = () => {
      if (source.readyState !== source.CLOSED) return;
      this.timer = this.timers.set(() => {
        this.source = this.connect();
      }, kAgainMs);
      this.listener.watchRefused();
    };
    source.onmessage = event => this.read(String(event.data));
    return source;
  }

  private read(text: string): void {
    let data: Record<string, unknown>;
    try {
      data = JSON.parse(text);
    } catch {
      return;
    }
    this.listener.captureChanged({
      state: String(data.state ?? ''),
      version: String(data.version ?? ''),
      endNs: String(data.end_ns ?? '0'),
      events: parseCount(data.events)
    });
  }
}
