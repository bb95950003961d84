// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {parseCount} from '../model/time_base';

export interface WatchUpdate {
  state: string;
  version: string;
  endNs: string;
  events: number;
}

export interface WatchListener {
  captureChanged(update: WatchUpdate): void;
  // The aggregator refuses to send changes, for example because too many pages follow captures.
  watchRefused(): void;
}

// Follows a capture by server-sent events. The browser connects again by itself after a connection broke, but not after
// a refusal.
export class LiveWatch {
  private readonly source: EventSource;

  constructor(api: ApiClient, captureId: string, listener: WatchListener) {
    this.source = api.watch(captureId);
    this.source.onerror = () => {
      if (this.source.readyState === EventSource.CLOSED) listener.watchRefused();
    };
    this.source.onmessage = event => {
      let data: Record<string, unknown>;
      try {
        data = JSON.parse(String(event.data));
      } catch {
        return;
      }
      listener.captureChanged({
        state: String(data.state ?? ''),
        version: String(data.version ?? ''),
        endNs: String(data.end_ns ?? '0'),
        events: parseCount(data.events)
      });
    };
  }

  close(): void {
    this.source.close();
  }
}
