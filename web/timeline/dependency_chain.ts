// SPDX-License-Identifier: Apache-2.0
import {EventEntry, EventLink} from '../api/api_types';

import {TimelineHost} from './timeline_host';

const kStepsMax = 20;

// Follows links from an event to what it waited for (upstream), or to what waited for it (downstream).
export class DependencyChain {
  constructor(private readonly host: TimelineHost) {}

  // The event and those after it in the chain, at most kStepsMax.
  async walk(event: EventEntry, upstream: boolean, signal: AbortSignal): Promise<EventEntry[]> {
    const chain = [event], seen = new Set([keyOf(event)]);
    while (chain.length < kStepsMax) {
      const link = this.nextLink(chain[chain.length - 1], upstream);
      if (!link || seen.has(keyOf(link))) break;
      const next = await this.read(link, signal);
      if (!next) break;
      seen.add(keyOf(next));
      chain.push(next);
    }
    return chain;
  }

  // In a collective everybody waits for the last that enters: that one is upstream, and the one that waited longest is
  // downstream. Other links point from the earlier to the later event.
  private nextLink(event: EventEntry, upstream: boolean): EventLink|null {
    const {base} = this.host.state, own = base.relative(event.start_ns);
    let best: EventLink|null = null, bestTime = 0;
    for (const isCollective of [true, false]) {
      for (const link of event.links ?? []) {
        if ((link.kind === 'collective') !== isCollective) continue;
        const time = base.relative(link.start_ns), wantsLater = isCollective === upstream;
        if (wantsLater ? time <= own : time >= own) continue;
        // Among collectives the extreme one counts, among flows and parents the nearest.
        const isBetter = isCollective ? (wantsLater ? time > bestTime : time < bestTime)
                                      : Math.abs(time - own) < Math.abs(bestTime - own);
        if (!best || isBetter) {
          best = link;
          bestTime = time;
        }
      }
      if (best) return best;
    }
    return null;
  }

  private async read(link: EventLink, signal: AbortSignal): Promise<EventEntry|null> {
    const {api, state} = this.host;
    const reply = await api.events(
        state.captureId, {streams: link.stream, from: link.start_ns, to: link.start_ns, limit: 100}, signal);
    return reply.events.find(event => event.row === link.row && event.start_ns === link.start_ns) ?? null;
  }
}

function keyOf(place: {stream: number, row: number, start_ns: string}): string {
  return `${place.stream}.${place.row}.${place.start_ns}`;
}
