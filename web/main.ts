// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from './api/api_client';
import {ApiError, describeError} from './api/api_error';
import {Session} from './api/api_types';
import {CapturePage} from './manager/capture_page';
import {ManagerPage} from './manager/manager_page';
import {safeText} from './model/safe_text';
import {setWorkerScript} from './timeline/painter';
import {startSceneWorker} from './timeline/scene_canvas';
import {timelineLoading, TimelinePage} from './timeline/timeline_page';
import {TimelineState} from './timeline/timeline_state';
import {accountElement} from './widgets/account';
import {button, element, notice, replaceChildren} from './widgets/dom';
import {Navigation, Page} from './widgets/navigation';
import {Theme} from './widgets/theme';
import {Toasts} from './widgets/toasts';

// Shows the page that the address names: the manager, a capture's timeline, or what is known about it. Where a session
// is needed and has ended, the sign-in form takes the place of the page, and the address stays.
class App implements Navigation {
  private readonly api = new ApiClient(this);
  private readonly theme = new Theme();
  private readonly toasts = new Toasts();
  private readonly root = document.getElementById('root')!;
  private page: Page|null = null;
  private session: Session|null = null;
  private shownPath = '';
  private isAsking = false;  // the sign-in form is shown

  start(): void {
    addEventListener('popstate', () => {
      if (location.pathname !== this.shownPath) void this.show();
    });
    void this.show();
  }

  go(path: string): void {
    history.pushState(null, '', path);
    void this.show();
  }

  // Called for each of the requests that are under way when a session ends.
  signedOut(error: ApiError): void {
    if (!this.isAsking) this.askToken(`A token is needed: ${error.message}.`, error.hint);
  }

  signOut(): void {
    this.api.signOut().then(
        () => this.askToken('You are signed out.', ''), error => this.toasts.fail('You are not signed out', error));
  }

  private async show(): Promise<void> {
    const path = this.shownPath = location.pathname,
          match = /^\/capture\/([^/]+)(\/about|\/certificate)?\/?$/.exec(path);
    this.isAsking = false;
    this.page?.close();
    this.page = null;
    replaceChildren(this.root, match ? timelineLoading(decode(match[1])) : notice('loading', 'Loading'));
    try {
      this.session ??= await this.api.session();
      const page = await this.makePage(this.session, match);
      if (this.shownPath !== path || this.isAsking) return page.close();
      this.page = page;
      document.title = match ? `${safeText(decode(match[1]), 100)} · neurontrace` : 'neurontrace';
      replaceChildren(this.root, page.element);
    } catch (error) {
      if (!this.isAsking) this.fail(error);
    }
  }

  private async makePage(session: Session, match: RegExpExecArray|null): Promise<Page> {
    const account = accountElement(session, this);
    if (!match) return new ManagerPage(this.api, this.toasts, this, this.theme, session, account);
    const id = decode(match[1]);
    if (match[2] !== undefined) return new CapturePage(this.api, this.toasts, this, this.theme, session, account, id);
    const state = new TimelineState(id, await this.api.layout(id));
    return new TimelinePage(this.api, this.toasts, this, this.theme, account, state);
  }

  private fail(error: unknown): void {
    const {message, hint} = describeError(error);
    replaceChildren(
        this.root,
        notice(
            'error', message, hint, button('Try again', () => void this.show()),
            button('All captures', () => this.go('/'))));
  }

  private askToken(text: string, hint: string): void {
    this.isAsking = true;
    this.session = null;
    this.page?.saveView?.();
    this.page?.close();
    this.page = null;
    const input = element('input', {type: 'password', id: 'token', autocomplete: 'current-password', required: true});
    const problem = element('p', {class: 'bad', role: 'alert'});
    const form = element(
        'form', {class: 'sign-in'}, element('h1', {}, 'neurontrace'), element('p', {}, text),
        element('label', {class: 'field', for: 'token'}, element('span', {}, 'Token'), input), problem,
        element('button', {type: 'submit', class: 'primary'}, 'Sign in'), hint && element('p', {class: 'faint'}, hint));
      form.addEventListener('submit', event => {
        event.preventDefault();
        this.api.signIn(input.value).then(() => this.show(), reason => {
          // A server without this call takes the token from the address, and answers with a cookie.
          const hasCall = !(reason instanceof ApiError) || ![404, 405, 501].includes(reason.status);
          if (hasCall)
            problem.textContent = describeError(reason).message;
          else
            location.assign(`${location.pathname}?token=${encodeURIComponent(input.value)}`);
        });
      });
      replaceChildren(this.root, form);
      input.focus();
  }
  }

  function decode(text: string): string {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  // The worker that draws loads this script too, and has no document.
  if(typeof document === 'undefined') {
    startSceneWorker();
  }
  else {
    setWorkerScript((document.currentScript as HTMLScriptElement | null)?.src ?? '');
    new App().start();
  }
