// SPDX-License-Identifier: Apache-2.0
import {RowFilter} from '../model/row_filter';
import {Grouping, kGroupings, kSectionNames} from '../model/track_kinds';
import {element, iconButton} from '../widgets/dom';
import {Menu, MenuItem} from '../widgets/menu';

import {TimelineHost} from './timeline_host';

// Of what is hidden, one entry each; all can be shown at once.
const kHiddenListed = 40;

// Above the tree: which ranks are shown, by what they are grouped, and what is hidden.
export class FilterBox {
  readonly element = element('div', {class: 'filter-box'});
  private readonly input = element('input', {
    type: 'search',
    placeholder: 'Filter ranks and rows',
    'aria-label': 'Filter ranks and rows',
    spellcheck: 'false',
    title: 'Words, rank:13, rank:8-15, -without'
  });
  private readonly hidden = new Menu('', 'What is hidden, to show it again', () => this.hiddenItems(), 'link');
  private readonly count = element('span', {class: 'faint', role: 'status'});

  constructor(private readonly host: TimelineHost) {
    this.input.value = host.state.tree.filter.text;
    this.input.addEventListener('input', () => {
      host.state.tree.filter = new RowFilter(this.input.value);
      host.tracksChanged();
    });
    this.input.addEventListener('keydown', event => {
      if (event.key === 'Escape') this.input.blur();
    });
    this.element.append(
        element(
            'div', {class: 'filter-line'}, this.input,
            iconButton('down', 'Expand all ranks', () => this.expandAll(true)),
            iconButton('up', 'Collapse all ranks', () => this.expandAll(false))),
        element(
            'div', {class: 'filter-line small'}, this.count, this.hidden.element,
            new Menu('Group ▾', 'Grouping and kinds of rows', () => this.groupItems(), 'link group-menu').element));
  }

  update(): void {
    const {tree, layout} = this.host.state, hidden = tree.hidden.size + tree.hiddenRows.size;
    const instances = layout.instances.length;
    this.count.textContent = `${tree.shownStreams} of ${layout.streams.length} streams, ${instances} ${
        instances === 1 ? 'instance' : 'instances'}`;
    this.hidden.label = `${hidden} hidden ▾`;
    this.hidden.element.hidden = hidden === 0;
  }

  group(grouping: Grouping): void {
    this.host.state.tree.grouping = grouping;
    this.host.tracksChanged();
  }

  // Kinds of rows on all ranks.
  toggleSection(section: string): void {
    const {tree} = this.host.state;
    tree.setSection(section, tree.closedSections.has(section));
    this.host.tracksChanged();
  }

  private groupItems(): MenuItem[] {
    const {tree} = this.host.state;
    return [
      ...kGroupings.map(
          ([name, label, hint]): MenuItem =>
              ({label: `${tree.grouping === name ? '● ' : ''}By ${label}`, hint, action: () => this.group(name)})),
      ...kSectionNames.map(
          ([section, label]):
              MenuItem => {
                const isClosed = tree.closedSections.has(section);
                return {
                  label: `${isClosed ? 'Expand' : 'Collapse'} ${label}`,
                  hint: 'on all ranks',
                  action: () => this.toggleSection(section)
                };
              })
    ];
  }

  private hiddenItems(): MenuItem[] {
    const {tree} = this.host.state, items: MenuItem[] = [{label: 'Show all', action: () => this.showAll()}];
    for (const stream of [...tree.hidden].slice(0, kHiddenListed))
      items.push({
        label: this.host.state.streamLabel(stream),
        hint: 'rank',
        action: () => this.show(() => tree.hidden.delete(stream))
      });
    for (const key of [...tree.hiddenRows].slice(0, kHiddenListed)) {
      const [stream, row] = key.split('.').map(Number);
      items.push({
        label: this.host.state.rowLabel(stream, row),
        hint: this.host.state.streamLabel(stream),
        action: () => this.show(() => tree.hiddenRows.delete(key))
      });
    }
    const more = tree.hidden.size + tree.hiddenRows.size - (items.length - 1);
    if (more > 0) items.push({label: `and ${more} more`, action: () => this.showAll(), disabled: true});
    return items;
  }

  private show(change: () => void): void {
    change();
    this.host.tracksChanged();
  }

  private expandAll(expand: boolean): void {
    const {tree} = this.host.state;
    // Pinned ranks are a person's choice and stay as they are.
    const shown = tree.tracks.filter(track => track.kind === 'rank').map(track => track.stream);
    for (const stream of shown)
      if (expand)
        tree.expanded.add(stream);
      else
        tree.expanded.delete(stream);
    this.host.tracksChanged();
  }

  private showAll(): void {
    this.show(() => {
      this.host.state.tree.hidden.clear();
      this.host.state.tree.hiddenRows.clear();
    });
  }
}
