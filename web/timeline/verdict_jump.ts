// SPDX-License-Identifier: Apache-2.0
import {EventEntry, EventsReply} from '../api/api_types';
import {eventOfPhase, evidenceQuery, heatMetricOf, isShownByCollective, PlacedVerdict} from '../model/insight';
import {parseCount} from '../model/time_base';

import {TimelineHost} from './timeline_host';

// More pinned ranks would leave no room for the others.
const kPinnedMax = 4;
const kExpandedMax = 1;
const kWitnessesMax = 64;
// Beside what is zoomed to, as a part of its length.
const kMargin = 1, kExecutionMargin = 0.25;
// Of one execution on one rank.
const kExecutionEventsMax = 500;

// What shows a verdict: the event to choose, and the stretch to zoom to.
interface Evidence {
  event: EventEntry;
  from: number;
  to: number;
}

// Goes from a verdict to the ranks and the time that it names.
export class VerdictJump {
  private readonly pinned = new Set<number>();  // by the verdict before, not by a person
  private abort: AbortController|null = null;

  constructor(private readonly host: TimelineHost) {}

  // Shows the verdict's stretch of time with its first ranks pinned, one of them open, and chooses the event that shows
  // it.
  show(index: number): void {
    const verdict = this.choose(index);
    if (!verdict) return;
    const {state} = this.host, margin = Math.max(1000, (verdict.to - verdict.from) * 0.02);
    this.showRanks(verdict);
    state.viewport.show(verdict.from - margin, verdict.to + margin);
    this.host.tracksChanged();
    const isHidden = verdict.streams.some(stream => !state.tree.find(stream, -1));
    if (isHidden) this.host.toasts.say('The filter at the left hides ranks of this verdict; clear it to see them.');
    void this.showEvidence(verdict, false);
  }

  // Zooms to what shows it on its rank, which is open above its peers: the execution, with the event of the verdict's
  // phase chosen, or the collective.
  showEvidenceOf(index: number): void {
    const verdict = this.choose(index);
    if (!verdict) return;
    this.showRanks(verdict);
    this.host.tracksChanged();
    void this.showEvidence(verdict, true);
  }

  // Shows the heat map in which the verdict is seen best; it marks the suspects.
  showOnHeatMap(index: number): void {
    const verdict = this.choose(index), {state} = this.host;
    if (!verdict) return;
    state.metric = heatMetricOf(verdict.kind);
    state.by = 'time';
    this.host.openPanel('heat');
  }

  private choose(index: number): PlacedVerdict|undefined {
    const {state} = this.host, verdict = state.insight?.verdicts[index];
    this.abort?.abort();
    if (!verdict) return undefined;
    state.verdict = index;
    this.host.overlayChanged();
    return verdict;
  }

  private showRanks(verdict: PlacedVerdict): void {
    const {tree} = this.host.state;
    for (const stream of this.pinned) tree.pinned.delete(stream);
    this.pinned.clear();
    for (const stream of verdict.streams) tree.reveal(stream, -1);
    if (verdict.tone === 'uneven') return;  // it names no rank
    for (const stream of verdict.streams.slice(0, kExpandedMax)) tree.expanded.add(stream);
    for (const stream of verdict.streams.slice(0, kPinnedMax)) {
      if (tree.pinned.has(stream)) continue;
      tree.pinned.add(stream);
      this.pinned.add(stream);
    }
  }

  private async showEvidence(verdict: PlacedVerdict, zooms: boolean): Promise<void> {
    const {host} = this, {state} = host, query = evidenceQuery(verdict.message), streams = this.witnesses(verdict);
    if (!query || !streams.length) return;
    const abort = this.abort = new AbortController();
    try {
      const ask = (streams: number[], from: number, to: number, limit: number): Promise<EventsReply> => host.api.events(
          state.captureId,
          {q: query, streams: streams.join(','), from: state.base.absolute(from), to: state.base.absolute(to), limit},
          abort.signal);
      const {events: [first]} = await ask(streams, verdict.from, verdict.to + 1, 1);
      if (abort.signal.aborted) return;
      if (!first) {
        if (zooms) host.toasts.say('The event that shows this verdict is not among the stored ones.');
        return;
      }
      let evidence = this.evidenceOf(verdict, [first]);
      if (!isShownByCollective(verdict.message)) {
        // The other events of the execution are within a step of its first one.
        const step = parseCount(verdict.message.stepNs) || verdict.to - verdict.from,
              reply = await ask([first.stream], evidence.from - step, evidence.to + step, kExecutionEventsMax);
        if (abort.signal.aborted) return;
        evidence = this.evidenceOf(verdict, [first, ...reply.events]);
      }
      this.showEvidenceEvent(evidence, zooms, isShownByCollective(verdict.message) ? kMargin : kExecutionMargin);
    } catch (error) {
      if (!abort.signal.aborted && zooms) host.toasts.fail('What shows the verdict was not found', error);
    }
  }

  // `events`: at least one, of one execution.
  private evidenceOf(verdict: PlacedVerdict, events: EventEntry[]): Evidence {
    const {base} = this.host.state, begins = events.map(event => base.relative(event.start_ns));
    return {
      event: eventOfPhase(verdict.message.phase, events) ?? events[0],
      from: Math.min(...begins),
      to: Math.max(...events.map((event, i) => begins[i] + parseCount(event.duration_ns)))
    };
  }

  // Where the event is looked for: at the first rank that is named. Ranks that hang may not have entered, those that
  // wait for them have.
  private witnesses(verdict: PlacedVerdict): number[] {
    if (verdict.tone !== 'hang') return verdict.streams.slice(0, 1);
    const {layout} = this.host.state, job = layout.stream(verdict.streams[0] ?? -1)?.job;
    return layout.streams
        .filter(stream => stream.kind === 'core' && stream.job === job && !verdict.streams.includes(stream.number))
        .slice(0, kWitnessesMax)
        .map(stream => stream.number);
  }

  private showEvidenceEvent({event, from: begin, to: end}: Evidence, zooms: boolean, margin: number): void {
    const {host} = this, {base, viewport} = host.state, from = base.relative(event.start_ns),
          to = from + parseCount(event.duration_ns), beside = margin * (end - begin) + 50;
    host.chooseSpan({
      stream: event.stream,
      row: event.row,
      name: event.name,
      category: event.category ?? '',
      from,
      to,
      count: 1,
      flags: 0,
      depth: event.depth ?? 0,
      id: event.id
    });
    if (zooms) viewport.show(begin - beside, end + beside);
    // The window stays: its middle is in view.
    const middle = (viewport.from + viewport.to) / 2;
    host.reveal(event.stream, event.row, zooms ? from : middle, zooms ? to : middle);
  }
}
