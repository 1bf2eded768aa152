/* Draws every exhibit on the page. The script of Plotly is fetched only where there is a chart.
   A figure's colours are tokens ("@primary", "@primary/0.4"); they are read from the stylesheet at
   drawing time, and everything is drawn again when the system turns light or dark. */
"use strict";
(() => {
  const script = document.currentScript;
  const language = document.documentElement.lang;
  let loading = null;

  const plotly = () => {
    loading ??= new Promise((done, failed) => {
      const tag = document.createElement("script");
      tag.src = script.dataset.plotly;
      /* On loading, plotly.js hangs the stylesheet of its maps into the page. We draw no maps, and
         our content policy refuses inline styles: let none through. */
      const append = Node.prototype.appendChild;
      document.head.appendChild = (node) => (node instanceof HTMLStyleElement ? node : append.call(document.head, node));
      tag.onload = () => {
        delete document.head.appendChild;
        window.Plotly.register({
          moduleType: "locale", name: "ja", dictionary: {},
          format: {
            days: ["日曜日", "月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日"],
            shortDays: ["日", "月", "火", "水", "木", "金", "土"],
            months: Array.from({ length: 12 }, (_, i) => `${i + 1}月`),
            shortMonths: Array.from({ length: 12 }, (_, i) => `${i + 1}月`),
            date: "%Y/%m/%d",
          },
        });
        done(window.Plotly);
      };
      tag.onerror = failed;
      document.head.append(tag);
    });
    return loading;
  };

  /* Custom properties hold light-dark() pairs: only a used colour tells which half applies. */
  const colours = () => {
    const probe = document.createElement("span");
    probe.hidden = true;
    document.body.append(probe);
    const known = new Map();
    const read = (token) => {
      if (!known.has(token)) {
        const [name, alpha] = token.slice(1).split("/");
        probe.style.color = `var(--${name})`;
        const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g);
        known.set(token, `rgba(${r}, ${g}, ${b}, ${alpha ?? 1})`);
      }
      return known.get(token);
    };
    const paint = (value) => {
      if (typeof value === "string") return /^@[a-z-]+(\/[\d.]+)?$/.test(value) ? read(value) : value;
      if (Array.isArray(value)) return value.map(paint);
      if (value && typeof value === "object") {
        return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, paint(inner)]));
      }
      return value;
    };
    return { paint, done: () => probe.remove() };
  };

  /* Japanese writes the month before the day, and the day's name last. */
  const dates = (format) => (language === "ja"
    ? format.replace("%a %-d %b", "%-m月%-d日(%a)").replace("%a %-d\n%b", "%-m/%-d\n%a") : format);
  const timed = (axis, width) => {
    if (axis?.type !== "date") return;
    axis.hoverformat = dates(axis.hoverformat);
    for (const stop of axis.tickformatstops) stop.value = dates(stop.value);
    if (width < 600) axis.nticks = Math.max(3, Math.floor(width / 80)); /* labels never touch */
  };

  const draw = async (root) => {
    const charts = [...root.querySelectorAll(".chart[data-figure]")];
    if (!charts.length) return;
    const Plotly = await plotly();
    const { paint, done } = colours();
    for (const chart of charts) {
      const { data, layout } = paint(JSON.parse(document.getElementById(chart.dataset.figure).textContent));
      chart.classList.add("drawn");
      timed(layout.xaxis, chart.clientWidth);
      layout.font = { family: getComputedStyle(document.body).fontFamily, size: 11, ...layout.font };
      await Plotly.react(chart, data, layout, {
        displayModeBar: false, responsive: true, locale: language, showTips: false,
        doubleClick: false, scrollZoom: false,
      });
    }
    done();
  };

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView({ block: "nearest" });
    }
  };

  draw(document);
  open();
  window.addEventListener("hashchange", open);
  document.addEventListener("htmx:load", (event) => { if (event.target !== document.body) draw(event.target); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(document));
})();
