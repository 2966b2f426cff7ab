// SPDX-License-Identifier: Apache-2.0
//! From text to an engine that is ready to run.
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use click_lang::{
    ConfigError, Errors, Flat, FlatElement, Memory, Phase, Scope, SourcePos, Sources, Subject,
    flatten, sort, text,
};

use crate::asked::ASKING;
use crate::config::args::{ArgContext, Args, ParsedArgs};
use crate::config::environment::{Environment, Limits};
use crate::config::names::Names;
use crate::engine::class::Class;
use crate::engine::element::Element;
use crate::engine::graph::{Graph, count_ports};
use crate::engine::{Config, Edge, ElementSlot, Engine, Plan};
use crate::judge;
use crate::registry::Registry;
use crate::spread::Spread;
use click_packet::PacketPool;
use click_packet::memory::has_room;

/// Bytes that the graph and the engine take for a port.
const PORT_BYTES: usize = 256;
/// Bytes that an element takes without arguments, such as a table of hosts.
pub const ELEMENT_BYTES: usize = 128 << 10;

/// The packages a configuration may `require`.
const PACKAGES: [&str; 2] = ["click", "clickos"];

/// Builds and connects all elements, without initializing them.
pub fn assemble(
    sources: Sources,
    registry: &Registry,
    environment: Environment,
    globals: &Scope,
    pool: PacketPool,
    now_ns: u64,
) -> Result<Engine, (Vec<ConfigError>, PacketPool)> {
    let mut errors = Errors::default();
    let limits = limits_of(&environment.limits);
    let mut flat = flatten(&sources, registry, globals, &limits, &mut errors);
    for warning in errors.take_warnings().into_sorted(&sources) {
        tell(&environment, &warning);
    }
    // after an error of the language connections may be missing
    let whole_graph = errors.is_empty();
    let spread = match whole_graph {
        true => spread(&flat, registry, &limits, &mut errors),
        false => Spread::default(),
    };
    #[cfg(feature = "threads")]
    let copies = match !spread.is_empty() && environment.limits.threads > 1 {
        true => {
            let (threads, packets) = (
                environment.limits.threads,
                environment.limits.packet_buffers,
            );
            crate::copies::copy(&mut flat, (threads, packets), &limits, &mut errors)
        }
        false => crate::copies::Copies::default(),
    };
    let written = flat.elements.len();
    add_implicit(&mut flat, &environment);
    check_requirements(&flat, &mut errors);
    let classes = find_classes(&flat, registry, &mut errors);
    let counts = count_ports(&flat, &classes, &mut errors);
    let ports: usize = counts
        .iter()
        .map(|(inputs, outputs)| inputs + outputs)
        .sum();
    let bytes = ports * PORT_BYTES;
    if !errors.plan(bytes, &limits, SourcePos::default(), "connecting all ports") {
        return Err((errors.into_sorted(&sources), pool));
    }
    let graph = Graph::check(&flat, &classes, &counts, whole_graph, &limits, &mut errors);
    let mut names = Names::new(&environment);
    let mut notices = Errors::resume(&flat.directives);
    let elements = build_elements(
        &flat,
        &classes,
        &counts,
        &environment,
        &mut names,
        [&mut errors, &mut notices],
        &limits,
    );
    let whole: Option<Vec<_>> = elements.into_iter().collect();
    let classes: Option<Vec<_>> = classes.into_iter().collect();
    let (Some(elements), Some(classes), true) = (whole, classes, errors.is_empty()) else {
        return Err((errors.into_sorted(&sources), pool));
    };
    for notice in notices.into_sorted(&sources) {
        tell(&environment, &notice);
    }
    let configs = flat.elements.iter_mut().map(|e| {
        let config = core::mem::take(&mut e.config);
        Config::new(config.trim(), e.place, &sources)
    });
    let configs = configs.collect();
    let slots = connect(&flat, &graph, &counts, elements, configs);
    let plan = Plan {
        sources,
        flat,
        graph,
        classes,
        written,
        spread,
        class_names: registry.iter().map(|(name, _)| name).collect(),
        #[cfg(feature = "threads")]
        copies,
    };
    Ok(Engine::new(plan, slots, environment, names, pool, now_ns))
}

/// The limits that the language has to keep.
fn limits_of(limits: &Limits) -> click_lang::Limits {
    let reserve = limits.reserve_bytes;
    click_lang::Limits {
        config_bytes: limits.config_bytes,
        elements: limits.elements,
        connections: limits.connections,
        ports: limits.ports,
        steps: limits.steps,
        memory: match reserve {
            0 => Memory::UNBOUNDED,
            _ => Memory { reserve, has_room },
        },
    }
}

/// Elements every configuration has; a configuration may also name them itself.
fn add_implicit(flat: &mut Flat, environment: &Environment) {
    for class in &environment.implicit {
        if flat.elements.iter().any(|e| *e.class == **class) {
            continue;
        }
        let number = |e: &FlatElement| -> Option<usize> {
            e.name
                .strip_prefix(&**class)?
                .strip_prefix('@')?
                .parse()
                .ok()
        };
        let taken: BTreeSet<usize> = sort::tree(flat.elements.iter().filter_map(number));
        let free = (flat.elements.len() + 1..).find(|n| !taken.contains(n));
        let name_of = format!("{class}@{}", free.unwrap_or(0));
        let place = SourcePos::default();
        flat.elements.push(FlatElement {
            name: name_of,
            class: class.as_str().into(),
            config: String::new(),
            place,
        });
    }
}

fn check_requirements(flat: &Flat, errors: &mut Errors) {
    for r in flat.requirements.iter().filter(|r| r.kind == "package") {
        if !PACKAGES.contains(&r.value.as_str()) {
            errors.add(
                r.place,
                format!("requirement \'package {}\' not available", r.value),
            );
        }
    }
}

/// What is to have copies on all threads (`FlowThreadSched`); nothing if anything is wrong with it.
fn spread(
    flat: &Flat,
    registry: &Registry,
    limits: &click_lang::Limits,
    errors: &mut Errors,
) -> Spread {
    if !flat.elements.iter().any(|e| *e.class == *ASKING) {
        return Spread::default();
    }
    // what is wrong with the graph itself is found again, with all elements
    let mut own = Errors::resume(&flat.directives);
    let classes = find_classes(flat, registry, &mut own);
    let counts = count_ports(flat, &classes, &mut own);
    let graph = Graph::check(flat, &classes, &counts, true, limits, &mut own);
    if !own.is_empty() {
        if own.is_exhausted() {
            *errors = own;
        }
        return Spread::default();
    }
    let spread = judge::judge(flat, &classes, &graph, limits, errors);
    match errors.is_empty() {
        true => spread,
        false => Spread::default(),
    }
}

fn find_classes(
    flat: &Flat,
    registry: &Registry,
    errors: &mut Errors,
) -> Vec<Option<&'static Class>> {
    use click_lang::Classes;
    let find = |(index, e): (usize, &FlatElement)| {
        let entry = registry.get(&e.class);
        if entry.is_none() {
            let reason = registry
                .unavailable(&e.class)
                .unwrap_or("no such element class");
            errors.add(
                e.place,
                format!("{}: {reason}", flat.elements[index].label()),
            );
        }
        entry.map(|e| e.class)
    };
    flat.elements.iter().enumerate().map(find).collect()
}

fn build_elements(
    flat: &Flat,
    classes: &[Option<&'static Class>],
    counts: &[(usize, usize)],
    environment: &Environment,
    names: &mut Names,
    [errors, notices]: [&mut Errors; 2],
    limits: &click_lang::Limits,
) -> Vec<Option<Box<dyn Element>>> {
    let mut elements: Vec<Option<Box<dyn Element>>> = classes.iter().map(|_| None).collect();
    let defines = |index: usize| classes[index].is_some_and(|c| c.defines_names);
    for index in in_order(classes.len(), defines) {
        let (e, Some(class)) = (&flat.elements[index], classes[index]) else {
            continue;
        };
        let (given, most) = (
            text::count_args(&e.config),
            environment.limits.table_entries,
        );
        if given > most {
            let message = format!("{given} arguments, the limit is {most}");
            errors.add_about(e.place, about(flat, index), message);
            continue;
        }
        if !has_memory(errors, flat, index, &e.config, limits) {
            break;
        }
        let arg_context = ArgContext {
            environment,
            names,
            element: &e.name,
        };
        let mut args = Args::bind(class.args, &e.config, counts[index], arg_context);
        let built = (class.build)(&mut args);
        let ParsedArgs {
            errors: wrong,
            notices: told,
            defined,
        } = args.finish();
        for message in told {
            notices.add_about(e.place, about(flat, index), message);
        }
        if wrong.is_empty() && built.is_none() {
            errors.add_about(e.place, about(flat, index), "could not be built");
        }
        for message in &wrong {
            errors.add_about(e.place, about(flat, index), message);
        }
        for (name, value) in defined {
            if let Err(message) = names.define(&e.name, &name, &value, environment) {
                errors.add_about(e.place, about(flat, index), message);
            }
        }
        elements[index] = built.filter(|_| wrong.is_empty());
    }
    elements
}

/// True if the memory takes an element as large as its arguments let it be.
fn has_memory(
    errors: &mut Errors,
    flat: &Flat,
    index: usize,
    config: &str,
    limits: &click_lang::Limits,
) -> bool {
    if limits.memory.reserve == 0 {
        return true;
    }
    let bytes = ELEMENT_BYTES + text::bytes_to_build(config);
    let place = flat.elements[index].place;
    errors.plan(bytes, limits, place, &flat.elements[index].label())
}

/// The numbers of elements, those first that define something for others.
fn in_order(elements: usize, defines: impl Fn(usize) -> bool) -> Vec<usize> {
    let (mut first, rest): (Vec<_>, Vec<_>) = (0..elements).partition(|index| defines(*index));
    first.extend(rest);
    first
}

fn tell(environment: &Environment, notice: &ConfigError) {
    let told = environment.host.as_ref().is_some_and(|h| h.notice(notice));
    if !told {
        (environment.console)(&notice.to_string());
    }
}

/// The element an error of its arguments is about.
fn about(flat: &Flat, index: usize) -> Subject {
    Subject {
        phase: Phase::Configuring,
        element: flat.elements[index].label(),
    }
}

fn connect(
    flat: &Flat,
    graph: &Graph,
    counts: &[(usize, usize)],
    elements: Vec<Box<dyn Element>>,
    configs: Vec<Config>,
) -> Vec<ElementSlot> {
    let slot = |((index, element), config): ((usize, Box<dyn Element>), Config)| {
        let (inputs, outputs) = counts[index];
        ElementSlot {
            name: flat.elements[index].name.clone(),
            config,
            element: Some(element),
            outputs: vec![None; outputs],
            inputs: vec![None; inputs],
            readable: false,
            writable: true,
            readers: Vec::new(),
            writers: Vec::new(),
            upstream: (0..inputs).map(|_| None).collect(),
            downstream: (0..outputs).map(|_| None).collect(),
            backoff: 0,
            reach: None,
            apart: None,
        }
    };
    let mut slots: Vec<ElementSlot> = elements
        .into_iter()
        .enumerate()
        .zip(configs)
        .map(slot)
        .collect();
    for c in &flat.connections {
        if graph.output_is_pull(c.from.0, c.from.1) {
            slots[c.to.0].inputs[c.to.1] = Some(Edge {
                element: c.from.0,
                port: c.from.1,
            });
        } else {
            slots[c.from.0].outputs[c.from.1] = Some(Edge {
                element: c.to.0,
                port: c.to.1,
            });
        }
    }
    slots
}

/// Lets every element start; those that cannot are errors at their places.
pub fn initialize(engine: &mut Engine) -> Result<(), Vec<ConfigError>> {
    let mut errors = Errors::resume(&engine.plan.flat.directives);
    let classes = &engine.plan.classes;
    let limits = limits_of(&engine.environment.limits);
    for index in in_order(classes.len(), |index| classes[index].defines_names) {
        let config = engine.config(index);
        if !has_memory(&mut errors, &engine.plan.flat, index, config, &limits) {
            break;
        }
        let started = engine.with(index, |element, ctx| element.initialize(ctx));
        if let Some(Err(message)) = started {
            let flat = &engine.plan.flat;
            let subject = Subject {
                phase: Phase::Initializing,
                element: flat.elements[index].label(),
            };
            errors.add_about(flat.elements[index].place, subject, message);
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.into_sorted(&engine.plan.sources))
    }
}
