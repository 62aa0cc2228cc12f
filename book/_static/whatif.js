/* Bring the what-ifs of a page to life: each asks the course's own Python, which runs
   in a worker that is loaded at the first touch of a control and never before. */
"use strict";

(() => {
  const script = document.currentScript;
  const PATIENCE = 150; // ms before a running answer shows that it runs
  const KEPT = 60_000; // ms that a download stays at its address: some browsers are slow
  const THOUSANDS = /^\d{1,3}(,\d{3})+(\.\d*)?$/;
  const PLACES = { facts: ".whatif-facts", legend: ".whatif-legends",
    chart: ".whatif-chart", table: ".whatif-table" };

  /** The worker, shared by all what-ifs of the page. */
  class Engine {
    constructor() {
      this.waiting = new Map();
      this.last = 0;
    }

    start() {
      const url = new URL("whatif-worker.js", script.src);
      url.search = `v=${script.dataset.version}`;
      this.worker = new Worker(url, { type: "module" });
      this.worker.onmessage = ({ data }) => this.settle(data);
      this.worker.onerror = () => this.fail("its program did not load");
    }

    settle({ id, reply, failure, memory }) {
      if (failure) return this.fail(failure);
      this.memory = memory;
      this.waiting.get(id)?.resolve(JSON.parse(reply));
      return this.waiting.delete(id);
    }

    fail(why) {
      this.failure = new Error(why);
      for (const { reject } of this.waiting.values()) reject(this.failure);
      this.waiting.clear();
    }

    ask(name, request) {
      if (!this.worker) this.start();
      if (this.failure) return Promise.reject(this.failure);
      this.last += 1;
      const id = this.last;
      return new Promise((resolve, reject) => {
        this.waiting.set(id, { resolve, reject });
        this.worker.postMessage({ id, name, request: JSON.stringify(request) });
      });
    }
  }

  const engine = new Engine();

  class WhatIf {
    constructor(element) {
      this.element = element;
      this.name = element.dataset.whatif;
      this.form = this.find("form");
      this.fields = [...this.form.elements].filter((field) => field.name);
      this.initial = this.texts();
      this.find(".whatif-still").hidden = true;
      this.form.hidden = false;
      this.find(".whatif-buttons").hidden = false;
      this.form.addEventListener("input", (event) => this.moved(event.target));
      this.form.addEventListener("submit", (event) => event.preventDefault());
      element.addEventListener("click", (event) => this.pressed(event.target));
      new ResizeObserver(() => this.resized()).observe(this.find(".whatif-chart"));
      this.restore();
    }

    find(selector) {
      return this.element.querySelector(selector);
    }

    texts() {
      return Object.fromEntries(this.fields.map((field) => [
        field.name,
        field.type === "checkbox" ? (field.checked ? "on" : "off") : field.value,
      ]));
    }

    /** Put texts into the controls; what is no control is left alone. */
    set(texts) {
      for (const field of this.fields) {
        if (!(field.name in texts)) continue;
        if (field.type === "checkbox") field.checked = texts[field.name] === "on";
        else field.value = texts[field.name];
        this.follow(field);
      }
    }

    slider(name) {
      return this.form.querySelector(`[data-for="${name}"]`);
    }

    /** A slider writes into its field, a field moves its slider. */
    moved(control) {
      this.say("");
      if (control.dataset.for) {
        const stops = JSON.parse(control.dataset.stops);
        const field = this.form.elements[control.dataset.for];
        field.value = stops[control.value];
        this.speak(control, field.value);
      } else this.follow(control);
      this.ask();
    }

    follow(field) {
      const slider = this.slider(field.name);
      const text = field.value.trim();
      const number = Number(THOUSANDS.test(text) ? text.replaceAll(",", "") : text);
      if (!slider || text === "" || !Number.isFinite(number)) return;
      const away = JSON.parse(slider.dataset.stops).map((stop) => Math.abs(stop - number));
      slider.value = away.indexOf(Math.min(...away));
      this.speak(slider, field.value);
    }

    speak(slider, value) {
      const unit = slider.parentElement.querySelector(".whatif-unit").textContent;
      slider.setAttribute("aria-valuetext", `${value} ${unit}`.trim());
    }

    pressed(button) {
      const acts = { reset: () => this.reset(), link: () => this.copyLink(),
        csv: () => this.ask({ csv: true }) };
      acts[button.dataset?.do]?.();
    }

    reset() {
      this.set(this.initial);
      if (this.asked) this.ask();
    }

    /** At most one question is under way; of those that wait only the newest counts. */
    ask(wishes = {}) {
      this.asked = true;
      this.wanted = { ...this.wanted, ...wishes, texts: this.texts() };
      if (!this.answering) this.answering = this.answerAll();
      return this.answering;
    }

    async answerAll() {
      const shows = setTimeout(() => this.busy(true), PATIENCE);
      try {
        while (this.wanted) {
          const request = { width: this.width(), ...this.wanted };
          this.drawn = request.width;
          this.wanted = null;
          this.show(await engine.ask(this.name, request), request);
        }
      } catch (error) {
        this.giveUp(error.message);
      } finally {
        clearTimeout(shows);
        this.busy(false);
        this.answering = null;
        this.resized();
      }
    }

    busy(yes) {
      this.find("progress").hidden = !yes;
      this.element.toggleAttribute("aria-busy", yes);
      if (yes) this.element.setAttribute("aria-busy", "true");
    }

    width() {
      const wide = this.find(".whatif-chart").clientWidth;
      return Math.round(Math.min(Math.max(wide, 280), 680));
    }

    show(reply, request) {
      for (const field of this.fields) this.mark(field, reply.errors[field.name]);
      const problem = this.find(".whatif-problem");
      problem.textContent = reply.errors[""] ?? "";
      problem.hidden = !reply.errors[""];
      const good = Object.keys(reply.errors).length === 0;
      this.element.classList.toggle("whatif-stale", !good);
      if (!good && request.csv) this.say("Not saved: a setting is refused.");
      if (!good) return;
      this.first ??= this.pieces();
      this.put(reply);
      if (reply.csv) this.save(reply.csv);
      this.element.dispatchEvent(new CustomEvent("whatif:shown"));
    }

    /** What is shown now, as a reply holds it. */
    pieces() {
      const html = Object.entries(PLACES).map(([piece, place]) => [
        piece, this.find(place).innerHTML]);
      return { finding: this.find(".whatif-finding").textContent,
        ...Object.fromEntries(html) };
    }

    put(pieces) {
      this.find(".whatif-finding").textContent = pieces.finding;
      for (const [piece, place] of Object.entries(PLACES)) {
        this.find(place).innerHTML = pieces[piece];
      }
    }

    /** An error that stays is not written again, which would be heard again. */
    mark(field, error) {
      const note = document.getElementById(`${field.id}-error`);
      if (note.textContent !== (error ?? "")) note.textContent = error ?? "";
      note.hidden = !error;
      if (error) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }

    /** Nothing will be computed here any more: what was there at first comes back. */
    giveUp(why) {
      this.set(this.initial);
      if (this.first) this.put(this.first);
      this.element.classList.remove("whatif-stale");
      this.form.hidden = true;
      this.find(".whatif-buttons").hidden = true;
      this.find(".whatif-still").hidden = false;
      const problem = this.find(".whatif-problem");
      problem.textContent = `The controls do not work here: ${why}. `
        + "Picture and numbers are those of the settings above.";
      problem.hidden = false;
    }

    resized() {
      if (this.asked && !this.answering && Math.abs(this.width() - this.drawn) > 24) this.ask();
    }

    /** The page's address with what differs from the start. */
    address() {
      const url = new URL(window.location.href);
      for (const [name, text] of Object.entries(this.texts())) {
        const key = `${this.name}.${name}`;
        if (text === this.initial[name]) url.searchParams.delete(key);
        else url.searchParams.set(key, text);
      }
      url.hash = this.element.id;
      return url.href;
    }

    async copyLink() {
      const address = this.address();
      window.history.replaceState(null, "", address);
      try {
        await navigator.clipboard.writeText(address);
        this.say("Link copied.");
      } catch {
        this.say("The link is in the address bar.");
      }
    }

    restore() {
      const given = new URLSearchParams(window.location.search);
      const names = this.fields.map((field) => field.name);
      const texts = names.filter((name) => given.has(`${this.name}.${name}`))
        .map((name) => [name, given.get(`${this.name}.${name}`)]);
      if (texts.length === 0) return;
      this.set(Object.fromEntries(texts));
      this.ask();
    }

    save(csv) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv], { type: "text/csv" }));
      link.download = `${this.name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
      this.say("Saved.");
    }

    say(words) {
      this.find(".whatif-said").textContent = words;
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const element of document.querySelectorAll("[data-whatif]")) {
      element.whatIf = new WhatIf(element);
      element.whatIf.engine = engine;
      if (window.location.protocol === "file:") {
        element.whatIf.giveUp("the page was opened as a file; `make serve` shows it whole");
      }
    }
  });
})();
