// SPDX-License-Identifier: Apache-2.0
import {RowFilter} from '../model/row_filter';
import {button, element, iconButton} from '../widgets/dom';

import {TimelineHost} from './timeline_host';

// Above the tree: which ranks are shown, and what is hidden.
export class FilterBox {
  readonly element = element('div', {class: 'filter-box'});
  private readonly input = element('input', {
    type: 'search',
    placeholder: 'Filter ranks and rows',
    'aria-label': 'Filter ranks and rows',
    spellcheck: 'false',
    title: 'Words, rank:13, rank:8-15, -without'
  });
  private readonly hidden = button('', () => this.showAll(), {class: 'link', title: 'Show all hidden ranks'});
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
        element('div', {class: 'filter-line small'}, this.count, this.hidden));
  }

  update(): void {
    const {tree, layout} = this.host.state;
    const instances = layout.instances.length,
          shown = tree.pinnedTracks.filter(track => track.kind === 'rank').length +
        tree.tracks.reduce((sum, track) => sum + (track.kind === 'instance' ? track.count : 0), 0);
    this.count.textContent =
        `${shown} of ${layout.streams.length} streams, ${instances} ${instances === 1 ? 'instance' : 'instances'}`;
    this.hidden.textContent = tree.hidden.size ? `show ${tree.hidden.size} hidden` : '';
    this.hidden.hidden = tree.hidden.size === 0;
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
    this.host.state.tree.hidden.clear();
    this.host.tracksChanged();
  }
}
