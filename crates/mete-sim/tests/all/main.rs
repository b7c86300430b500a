//! The tests of the simulator: one program, which is built once and runs them beside each other.

mod allocation;
mod devices;
mod documentation;
mod guests;
mod host;
mod instant;
mod properties;
mod quanta;
mod recording;
mod replay;
mod scenarios;
mod service_error;
mod streams;
mod sweep;
mod tavs_host;
mod theory;
mod traces;
mod vcpus;
