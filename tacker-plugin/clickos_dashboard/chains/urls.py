# SPDX-License-Identifier: Apache-2.0
"""Addresses of chains."""

from django.urls import path

from clickos_dashboard.chains import views

urlpatterns = [
    path('', views.IndexView.as_view(), name='index'),
    path('create', views.CreateView.as_view(), name='create'),
    path('<uuid:chain_id>/', views.DetailView.as_view(), name='detail'),
    path('<uuid:chain_id>/insert', views.InsertView.as_view(),
         name='insert'),
    path('<uuid:chain_id>/rules/<uuid:rule_id>', views.RuleView.as_view(),
         name='rule'),
    path('<uuid:chain_id>/order', views.order, name='order'),
    path('<uuid:chain_id>/counters', views.counters, name='counters')]
