// SPDX-License-Identifier: Apache-2.0
import {formatBytes, formatCount, formatDuration, formatShortCount, formatUtc} from '../model/text_format';
import {Column, DataTable} from '../widgets/data_table';
import {button, element, icon, iconButton} from '../widgets/dom';
import {Menu} from '../widgets/menu';
import {Navigation} from '../widgets/navigation';

import {CaptureActions} from './capture_actions';
import {CaptureFacts} from './capture_facts';

// All captures, running ones with a dot that pulses.
export class CapturesTable {
  readonly table: DataTable<CaptureFacts>;

  constructor(
      private readonly actions: CaptureActions, private readonly navigation: Navigation,
      private readonly owner: {sortChanged(): void, filterTag(tag: string): void}) {
    this.table = new DataTable(this.columns(), 'Captures', 4, true, null, 1000, owner);
  }

  private columns(): Column<CaptureFacts>[] {
    return [
      {
        title: '★',
        value: facts => facts.starred ? 1 : 0,
        show: facts => this.starButton(facts),
        style: 'star',
        numeric: true
      },
      {title: 'Name', value: facts => facts.title, show: facts => this.nameLink(facts), style: 'name'},
      {
        title: 'Job',
        value: facts => facts.job,
        show: facts => facts.job || element('span', {class: 'faint'}, 'any'),
        style: 'job'
      },
      {title: 'State', value: facts => facts.stateText, show: facts => this.stateOf(facts)},
      {
        title: 'Started (UTC)',
        value: facts => facts.startedNs.toString(),
        show: facts => element('span', {title: formatUtc(facts.startedNs)}, formatUtc(facts.startedNs).slice(0, 16)),
        style: 'nowrap'
      },
      {
        title: 'Duration',
        numeric: true,
        value: facts => facts.durationNs,
        show: facts => formatDuration(facts.durationNs)
      },
      {title: 'Ranks', numeric: true, value: facts => facts.ranks, show: facts => formatCount(facts.ranks)},
      {title: 'Events', numeric: true, value: facts => facts.events, show: facts => short(facts.events)},
      {title: 'Lost', numeric: true, value: facts => facts.lost, show: facts => this.lostOf(facts)},
      {title: 'Size', numeric: true, value: facts => facts.bytes, show: facts => formatBytes(facts.bytes)},
      {
        title: 'Tags',
        value: facts => facts.allTags.join(' '),
        show: facts => element('span', {class: 'tags'}, ...facts.allTags.map(tag => this.tagButton(tag))),
        style: 'tag-list'
      },
      {title: 'Actions', sortable: false, value: () => '', show: facts => this.rowTools(facts), style: 'row-tools'},
    ];
  }

  private starButton(facts: CaptureFacts): HTMLElement {
    return iconButton('star', facts.starred ? 'Remove star' : 'Star', () => this.actions.star(facts), {
      disabled: !this.actions.mayEdit,
      class: facts.starred ? 'icon-button starred' : 'icon-button',
      'aria-pressed': String(facts.starred)
    });
  }

  private tagButton(tag: string): HTMLElement {
    return button(tag, () => this.owner.filterTag(tag), {class: 'tag', title: 'Show the captures with this tag'});
  }

  private nameLink(facts: CaptureFacts): HTMLElement {
    const made = link(this.navigation, `/capture/${encodeURIComponent(facts.id)}`, facts.title);
    made.title = facts.id;
    return made;
  }

  private stateOf(facts: CaptureFacts): HTMLElement {
    return element(
        'span', {
          class: `state ${facts.isLive ? 'live' : facts.state.toLowerCase()}`,
          title: facts.capture.certificate?.verdict
        },
        facts.stateText);
  }

  private lostOf(facts: CaptureFacts): HTMLElement|string {
    if (facts.lost === 0 && !facts.lostUnknown) return '0';
    return element(
        'span', {class: 'bad', title: facts.lostUnknown ? 'and events that nobody could count' : undefined},
        short(facts.lost), facts.lostUnknown && ' +?');
  }

  private rowTools(facts: CaptureFacts): HTMLElement {
    return element(
        'span', {class: 'row-buttons'}, link(this.navigation, `/capture/${encodeURIComponent(facts.id)}`, 'Timeline'),
        link(this.navigation, `/capture/${encodeURIComponent(facts.id)}?panel=why&why=all`, 'Why slow?'),
        link(this.navigation, `/capture/${encodeURIComponent(facts.id)}/about`, 'About'),
        new Menu(icon('more'), `More actions for ${facts.title}`, () => this.actions.items(facts), 'icon-button')
            .element);
  }
}

function short(count: number): HTMLElement {
  return element('span', {title: formatCount(count)}, formatShortCount(count));
}

// A link within the bundle; with ctrl it opens a tab as any link does.
export function link(navigation: Navigation, path: string, text: string): HTMLAnchorElement {
  const made = element('a', {href: path}, text);
  made.addEventListener('click', event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    navigation.go(path);
  });
  return made;
}
