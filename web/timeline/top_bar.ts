// SPDX-License-Identifier: Apache-2.0
import {append, element, iconButton} from '../widgets/dom';
import {Menu, MenuItem} from '../widgets/menu';
import {Theme} from '../widgets/theme';

import {TimelineHost} from './timeline_host';

export interface TopBarActions {
  showManager(): void;
  showHelp(): void;
  showAbout(): void;
  fit(): void;
  setFollow(follow: boolean): void;
  exportItems(): MenuItem[];
}

// How an ended capture is, once that was asked for.
export interface CaptureEnd {
  state: string;    // such as `complete`
  verdict: string;  // of its certificate
}

const kTools: [string, string][] =
    [['select', 'Select (1)'], ['pan', 'Pan (2)'], ['zoom', 'Zoom into a range (3)'], ['time', 'Measure time (4)']];

// The line above the timeline: where one is, search, tools, and what leaves the page.
export class TopBar {
  readonly element = element('header', {class: 'top-bar'});
  private readonly tools: HTMLButtonElement[];
  private readonly follow: HTMLButtonElement;
  private readonly state = element('span', {class: 'state'});
  private readonly digests = element('span', {class: 'digests faint'});
  private ended: CaptureEnd|null = null;
  private readonly name = element('h1');

  constructor(
      private readonly host: TimelineHost, search: HTMLElement, theme: Theme, account: HTMLElement,
      actions: TopBarActions) {
    this.tools =
        kTools.map(([icon, label], i) => iconButton(icon, label, () => host.setTool(i + 1), {'aria-pressed': 'false'}));
    this.follow = element(
        'button', {
          type: 'button',
          class: 'follow',
          'aria-pressed': 'false',
          title: 'Keep the newest events in view',
          onclick: () => actions.setFollow(!host.state.follow)
        },
        'Follow');
    const back = iconButton('back', 'All captures', () => actions.showManager(), {class: 'icon-button back'});
    append(
        this.element, back, this.name, this.state, this.digests,
        element('button', {type: 'button', class: 'plain', onclick: () => actions.showAbout()}, 'About'),
        element('span', {class: 'grow'}), search, element('span', {class: 'grow'}),
        element('span', {class: 'segments', role: 'group', 'aria-label': 'Tools'}, ...this.tools),
        iconButton('fit', 'Show the whole capture (0)', () => actions.fit()), this.follow,
        new Menu('Export ▾', 'Open elsewhere, or save', () => actions.exportItems()).element,
        iconButton('theme', 'Light or dark', () => theme.toggle()),
        iconButton('help', 'Keys (?)', () => actions.showHelp()), account);
    this.update();
  }

  showEnd(ended: CaptureEnd): void {
    this.ended = ended;
    this.update();
  }

  // `text`: how much of the capture is digested, or nothing.
  showDigests(text: string): void {
    this.digests.textContent = text;
  }

  update(): void {
    const {state} = this.host, {layout} = state;
    this.name.textContent = layout.name || layout.id;
    this.name.title = layout.id;
    const isLive = layout.live, shown = isLive ? 'recording' : this.ended?.state ?? layout.state.toLowerCase();
    this.state.className = `state ${isLive ? 'live' : shown.replace(/ /g, '_')}`;
    this.state.textContent = shown.replace(/_/g, ' ');
    this.state.title = isLive ? '' : this.ended?.verdict ?? '';
    this.follow.hidden = !isLive;
    this.follow.setAttribute('aria-pressed', String(state.follow));
    this.tools.forEach((tool, i) => tool.setAttribute('aria-pressed', String(state.tool === i + 1)));
  }
}
