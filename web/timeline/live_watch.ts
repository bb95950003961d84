// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {parseCount} from '../model/time_base';

export interface WatchUpdate {
  state: string;
  version: string;
  endNs: string;
  events: number;
}

// Follows a capture by server-sent events. The browser connects again by itself.
export class LiveWatch {
  private readonly source: EventSource;

  constructor(api: ApiClient, captureId: string, listener: {captureChanged(update: WatchUpdate): void}) {
    this.source = api.watch(captureId);
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
