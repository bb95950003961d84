// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {EventEntry, LinksReply} from '../api/api_types';
import {Toasts} from '../widgets/toasts';

import {TimelineState} from './timeline_state';
import {VerdictLoader} from './verdict_loader';

// A span that a person chose, with what the drawing knows of it. Times are relative.
export interface ChosenSpan {
  stream: number;
  row: number;
  name: string;
  category: string;
  from: number;
  to: number;
  count: number;
  flags: number;
  depth: number;
  id?: string;  // of the API, once it is known
}

// A span of a selection that was made with Ctrl. Its own time is without spans that are nested in it on its row.
export interface Pick {
  stream: number;
  row: number;
  name: string;
  from: number;
  duration: number;
  self: number;
}

// A stretch of time on some streams.
export interface Box {
  from: number;
  to: number;
  streams: number[];
}

export interface Marker {
  name: string;
  time: number;
}

// What the parts of the timeline ask of the page, which implements it.
export interface TimelineHost {
  readonly state: TimelineState;
  readonly api: ApiClient;
  readonly toasts: Toasts;
  readonly verdicts: VerdictLoader;
  // The window of time moved.
  viewChanged(): void;
  // Lines were added, removed, or became higher.
  tracksChanged(): void;
  // Something that is drawn over the spans changed.
  overlayChanged(): void;
  chooseSpan(span: ChosenSpan|null): void;
  chooseBox(box: Box|null): void;
  // Adds these spans to the selection; those that are in it leave it.
  pick(picks: Pick[]): void;
  // The details of the chosen span arrived.
  detailsArrived(event: EventEntry|null): void;
  // What it is connected to arrived.
  linksArrived(links: LinksReply|null): void;
  // Scrolls and pans until the stretch on this row is visible.
  reveal(stream: number, row: number, from: number, to: number): void;
  openPanel(name: string): void;
  find(query: string): void;
  setTool(tool: number): void;
  // What the answers on the screen left out changed.
  cutChanged(): void;
}
